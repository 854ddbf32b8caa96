import { visit } from 'graphql';
import { createClient } from 'graphql-ws';

// How many items of a log stream the response pane keeps.
const LOG_LENGTH = 500;

// What stands below a stream's last item.
const ENDED = 'The stream has ended: the server has no more to send.';

// Close codes of a socket whose token is missing, unknown, revoked or expired.
const REFUSALS = new Set([4401, 4403]);

// Root fields that send one item after the other (LOG streams of the schema); the others send states, where the newest is all.
const LOG_STREAMS = new Set(['runEvents', 'workspaceActivity']);

/**
 * Makes GraphiQL's fetcher: queries and mutations by POST, subscriptions by graphql-transport-ws, both at url. The Headers tab holds
 * for both: a socket gets its content as the payload of connection_init. A tab without an Authorization of its own sends the page's
 * token. refused is told, with the server's words and the token that was sent, when that one is missing or does not count;
 * made is given the data of each mutation.
 */
export function createFetcher(url, { token = () => undefined, refused = () => {}, made = () => {} } = {}) {
  const socketUrl = Object.assign(new URL(url), { protocol: url.protocol.replace('http', 'ws') });

  return (params, { headers, documentAST } = {}) => {
    const own = Object.keys(headers ?? {}).some(key => key.toLowerCase() === 'authorization');
    const used = own ? undefined : token();
    const sent = used ? { ...headers, Authorization: `Bearer ${used}` } : { ...headers };
    const tell = own ? () => {} : why => refused(why, used);
    const field = documentAST && subscriptionField(documentAST, params.operationName);
    if (field) return subscribe(socketUrl, sent, params, field, tell);
    const answer = post(url, sent, params, tell);
    if (documentAST && isMutation(documentAST, params.operationName)) answer.then(({ data }) => made(data), () => {});
    return answer;
  };
}

async function post(url, headers, params, refused) {
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
    const answer = JSON.parse(text);
    if (response.status === 401) refused(answer.errors?.[0]?.message ?? 'the server answered 401');
    return answer;
  } catch {
    throw new Error(`The server answered ${response.status} without JSON: ${text.slice(0, 500)}`);
  }
}

// One socket for each subscription: it carries the headers of its tab and ends with it.
async function* subscribe(url, headers, params, field, refused) {
  const client = createClient({ url: url.href, connectionParams: headers, retryAttempts: 0 });
  const items = [];
  let shown = { data: null };
  try {
    for await (const result of client.iterate(params)) {
      const item = LOG_STREAMS.has(field.name) && result.data?.[field.key];
      if (item) {
        items.push(item);
        if (items.length > LOG_LENGTH) items.shift();
      }
      shown = item ? { ...result, data: { [field.key]: items } } : result;
      yield shown;
    }
    yield { ...shown, extensions: { ...shown.extensions, console: ENDED } };
  } catch (error) {
    if (!(error instanceof CloseEvent)) throw error;
    if (REFUSALS.has(error.code)) refused(error.reason);
    throw new Error(`The socket was closed: ${error.code} ${error.reason}`.trim());
  } finally {
    await client.dispose();
  }
}

function isMutation(document, operationName) {
  return document.definitions.some(
    ({ kind, operation, name }) => kind === 'OperationDefinition' && operation === 'mutation' && (!operationName || name?.value === operationName),
  );
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
