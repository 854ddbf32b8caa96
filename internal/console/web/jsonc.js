// A prettier plugin for the one language GraphiQL formats besides GraphQL: JSON with comments. Prettier's own comes with a
// whole JavaScript parser, a tenth of the page.
import { applyEdits, format } from 'jsonc-parser';

const options = { tabSize: 2, insertSpaces: true, eol: '\n' };

export const parsers = {
  jsonc: {
    astFormat: 'jsonc-text',
    parse: text => ({ text }),
    locStart: () => 0,
    locEnd: node => node.text.length,
  },
};

export const printers = {
  'jsonc-text': { print: ({ node }) => applyEdits(node.text, format(node.text, undefined, options)) },
};
