import { visit } from 'graphql';
import { createClient } from 'graphql-ws';

// What the Headers tab holds in the place of a token; it is never sent.
export const TOKEN_PLACEHOLDER = 'PASTE_TOKEN';

// How many items of a log stream the response pane keeps.
const LOG_LENGTH = 500;

// Root fields that send one item after the other (LOG streams of the schema); the others send states, where the newest is all.
const LOG_STREAMS = new Set(['runEvents', 'workspaceActivity']);

/**
 * Makes GraphiQL's fetcher: queries and mutations by POST, subscriptions by graphql-transport-ws, both at url. The Headers tab holds
 * for both: a socket gets its content as the payload of connection_init. A tab without a token of its own uses the one given last
 * in this page; it is kept in memory only.
 */
export function createFetcher(url) {
  const socketUrl = Object.assign(new URL(url), { protocol: url.protocol.replace('http', 'ws') });
  let authorization;

  const complete = headers => {
    const sent = { ...headers };
    const name = Object.keys(sent).find(key => key.toLowerCase() === 'authorization');
    if (name && !String(sent[name]).includes(TOKEN_PLACEHOLDER)) {
      authorization = sent[name];
      return sent;
    }
    if (name) delete sent[name];
    return authorization ? { ...sent, Authorization: authorization } : sent;
  };

  return (params, { headers, documentAST } = {}) => {
    const sent = complete(headers);
    const field = documentAST && subscriptionField(documentAST, params.operationName);
    return field ? subscribe(socketUrl, sent, params, field) : post(url, sent, params);
  };
}

async function post(url, headers, params) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/graphql-response+json, application/json;q=0.9',
      ...headers,
    },
    body: JSON.stringify(params),
  });
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`The server answered ${response.status} without JSON: ${text.slice(0, 500)}`);
  }
}

// One socket for each subscription: it carries the headers of its tab and ends with it.
async function* subscribe(url, headers, params, field) {
  const client = createClient({ url: url.href, connectionParams: headers, retryAttempts: 0 });
  const items = [];
  try {
    for await (const result of client.iterate(params)) {
      const item = LOG_STREAMS.has(field.name) && result.data?.[field.key];
      if (!item) {
        yield result;
        continue;
      }
      items.push(item);
      if (items.length > LOG_LENGTH) items.shift();
      yield { ...result, data: { [field.key]: items } };
    }
  } catch (error) {
    throw error instanceof CloseEvent ? new Error(`The socket was closed: ${error.code} ${error.reason}`.trim()) : error;
  } finally {
    await client.dispose();
  }
}

// The root field of the subscription that would run, or undefined when the operation is none.
function subscriptionField(document, operationName) {
  let field;
  visit(document, {
    OperationDefinition(node) {
      const chosen = !operationName || node.name?.value === operationName;
      if (!chosen || node.operation !== 'subscription') return false;
      const first = node.selectionSet.selections.find(selection => selection.kind === 'Field');
      field = { name: first?.name.value, key: (first?.alias ?? first?.name)?.value };
      return false;
    },
  });
  return field;
}
