// Writes every file of build/ gzipped to ../dist. The compressor is fflate and not Node's zlib, whose bytes differ between machines:
// the same sources give the same files everywhere.
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'fflate';

const from = new URL('build/', import.meta.url).pathname;
const to = new URL('../dist/', import.meta.url).pathname;

rmSync(to, { recursive: true, force: true });
let before = 0;
let after = 0;
for (const name of readdirSync(from, { recursive: true }).sort()) {
  if (!statSync(join(from, name)).isFile()) continue;
  const raw = readFileSync(join(from, name));
  const packed = gzipSync(raw, { level: 9, mtime: 0 });
  mkdirSync(dirname(join(to, name)), { recursive: true });
  writeFileSync(join(to, `${name}.gz`), packed);
  before += raw.length;
  after += packed.length;
}
console.log(`packed ${before} bytes into ${after}`);
