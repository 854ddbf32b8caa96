import './workers.js';
import '@graphiql/react/style.css';
import '@graphiql/plugin-doc-explorer/style.css';
import '@graphiql/plugin-history/style.css';
import 'graphiql/graphiql.css';
import './style.css';
import { createRoot } from 'react-dom/client';
import { GraphiQL } from 'graphiql';
import { HISTORY_PLUGIN } from '@graphiql/plugin-history';
import { TOKEN_PLACEHOLDER, createFetcher } from './fetcher.js';
import { operations } from './operations.js';
import { EXAMPLES_PLUGIN } from './examples.jsx';
import { storage } from './storage.js';

// The server says in the page whether callers must bring a token; then each tab starts with the header to fill in.
const needsToken = document.querySelector('meta[name="rouse-access"]').content === 'token';
const defaultHeaders = needsToken
  ? `// One tab with a token is enough until the page is loaded again.
// Then fetch the schema with Shift-Ctrl-R.
{
  "Authorization": "Bearer ${TOKEN_PLACEHOLDER}"
}`
  : undefined;

// GraphiQL shows the first tab's query on a first visit, but not its variables.
const firstVisit = storage.getItem('graphiql:tabState') === null;
const link = new URLSearchParams(location.search);
const fetcher = createFetcher(new URL('graphql', document.baseURI));
const plugins = [HISTORY_PLUGIN, EXAMPLES_PLUGIN];

createRoot(document.getElementById('root')).render(
  <GraphiQL
    fetcher={fetcher}
    plugins={plugins}
    storage={storage}
    shouldPersistHeaders={false}
    showPersistHeadersSettings={false}
    defaultTabs={operations.map(({ query, variables }) => ({ query, variables, headers: defaultHeaders }))}
    defaultHeaders={defaultHeaders}
    defaultQuery=""
    initialQuery={link.get('query') ?? undefined}
    initialVariables={link.get('variables') ?? (firstVisit && !link.has('query') ? operations[0].variables : undefined)}
    defaultEditorToolsVisibility={needsToken ? 'headers' : 'variables'}
    inputValueDeprecation
  >
    <GraphiQL.Logo>
      <span className="rouse-logo">Rouse</span>
    </GraphiQL.Logo>
  </GraphiQL>,
);
