// The example operations: files NN-name.graphql with their variables in NN-name.json, in the order of their numbers.
const queries = import.meta.glob('./operations/*.graphql', { query: '?raw', import: 'default', eager: true });
const variables = import.meta.glob('./operations/*.json', { query: '?raw', import: 'default', eager: true });

export const operations = Object.keys(queries)
  .sort()
  .map(path => ({
    title: path.replace(/^.*\/\d+-|\.graphql$/g, '').replaceAll('-', ' '),
    query: queries[path].trim(),
    variables: variables[path.replace(/\.graphql$/, '.json')].trim(),
  }));
