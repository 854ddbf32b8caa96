import './workers.js';
import '@graphiql/react/style.css';
import '@graphiql/plugin-doc-explorer/style.css';
import '@graphiql/plugin-history/style.css';
import 'graphiql/graphiql.css';
import './style.css';
import { createRoot } from 'react-dom/client';
import { createTokens } from './token.js';
import { Console } from './console.jsx';

// The server says in the page whether callers must bring a token.
const needsToken = document.querySelector('meta[name="rouse-access"]').content === 'token';
const tokens = createTokens(window);
tokens.takeFromAddress();
// The address with a token, opened in a tab that shows this page already, changes the fragment alone.
addEventListener('hashchange', () => tokens.takeFromAddress() && location.reload());

createRoot(document.getElementById('root')).render(<Console tokens={tokens} needsToken={needsToken} />);
