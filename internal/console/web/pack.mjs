// Writes every file of build/ gzipped to ../dist, and the digest of the sources to build.sum, by which a test finds a page that is older
// than its sources. The compressor is fflate and not Node's zlib, whose bytes differ between machines: the same sources give the same
// files everywhere.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'fflate';

const here = fileURLToPath(new URL('.', import.meta.url));
const dist = join(here, '../dist');

const sha256 = data => createHash('sha256').update(data).digest('hex');
const filesIn = folder =>
  readdirSync(folder, { recursive: true })
    .map(name => name.replaceAll('\\', '/'))
    .filter(name => statSync(join(folder, name)).isFile())
    .sort();

rmSync(dist, { recursive: true, force: true });
let before = 0;
let after = 0;
for (const name of filesIn(join(here, 'build'))) {
  const raw = readFileSync(join(here, 'build', name));
  const packed = gzipSync(raw, { level: 9, mtime: 0 });
  mkdirSync(dirname(join(dist, name)), { recursive: true });
  writeFileSync(join(dist, `${name}.gz`), packed);
  before += raw.length;
  after += packed.length;
}

const top = readdirSync(here).filter(name => /\.(css|html|js|json|jsx|mjs)$/.test(name) && !name.endsWith('.test.mjs'));
const sources = ['operations', 'public'].flatMap(folder => filesIn(join(here, folder)).map(name => `${folder}/${name}`)).concat(top).sort();
const sums = sources.map(name => `${sha256(readFileSync(join(here, name)))}  ${name}\n`);
writeFileSync(join(here, 'build.sum'), sums.join(''));
console.log(`packed ${before} bytes into ${after}`);
