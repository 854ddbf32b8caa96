import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import { collectLicenses, writeLicenses } from './licenses.mjs';

const here = name => fileURLToPath(new URL(name, import.meta.url));

export default defineConfig({
  base: './',
  resolve: {
    alias: [
      { find: 'monaco-editor/esm/vs/editor/edcore.main.js', replacement: here('monaco.js') },
      { find: 'prettier/plugins/estree', replacement: here('jsonc.js') },
      { find: 'prettier/parser-babel', replacement: here('jsonc.js') },
      { find: 'prettier/parser-graphql', replacement: 'prettier/plugins/graphql' },
    ],
  },
  build: {
    outDir: 'build',
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 4000,
    reportCompressedSize: false,
    rolldownOptions: {
      // "use client" means something to servers that render React; there is none here.
      onwarn: (warning, warn) => warning.code === 'MODULE_LEVEL_DIRECTIVE' || warn(warning),
    },
  },
  plugins: [collectLicenses(), writeLicenses('licenses.md')],
  worker: { format: 'es', plugins: () => [collectLicenses()] },
});
