// Collects the licences of every package whose code is in the page or in one of its workers, which Vite's own list leaves out, and
// adds them to the page as licenses.md.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const packageOf = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
const texts = /^(licen[sc]e|notice|third-?party-?notices)/i;
const folders = new Set();

/** A plugin that remembers the packages of a bundle; give it to the workers and to the page. */
export function collectLicenses() {
  return {
    name: 'collect-licenses',
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) {
        for (const id of chunk.moduleIds ?? []) {
          const folder = packageOf.exec(id.replace(/^\0/, ''))?.[0];
          if (folder && existsSync(join(folder, 'package.json'))) folders.add(folder);
        }
      }
    },
  };
}

/** A plugin that writes the list; it comes after collectLicenses in the page, whose workers are bundled first. */
export function writeLicenses(fileName) {
  return {
    name: 'write-licenses',
    generateBundle() {
      const sections = [...folders].map(section).sort();
      const source = `# Licenses of the packages in this page\n\n${[...new Set(sections)].join('\n')}`;
      this.emitFile({ type: 'asset', fileName, source });
    },
  };
}

function section(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter(file => texts.test(file)).sort();
  const bodies = files.map(file => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim());
  return `## ${name} ${version} (${license})\n\n${bodies.map(body => `${body}\n`).join('\n')}`;
}
