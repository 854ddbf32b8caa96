import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { parse } from 'graphql';
import { createFetcher } from './fetcher.js';
import { storage } from './storage.js';

const url = new URL('http://127.0.0.1:8080/graphql');
const query = { query: '{ process { version } }' };
let requests;
let sockets;

// The one socket of a subscription: acknowledges, sends what the test wants, completes.
class FakeSocket extends EventTarget {
  static CONNECTING = 0;
  static OPEN = 1;
  static CLOSING = 2;
  static CLOSED = 3;
  static answers = [];
  readyState = 1;
  sent = [];

  constructor(address, protocol) {
    super();
    Object.assign(this, { address, protocol });
    sockets.push(this);
    queueMicrotask(() => this.onopen());
  }

  send(text) {
    const message = JSON.parse(text);
    this.sent.push(message);
    if (message.type === 'connection_init') this.receive({ type: 'connection_ack' });
    if (message.type !== 'subscribe') return;
    for (const data of FakeSocket.answers) this.receive({ id: message.id, type: 'next', payload: { data } });
    this.receive({ id: message.id, type: 'complete' });
  }

  receive(message) {
    queueMicrotask(() => this.onmessage({ data: JSON.stringify(message) }));
  }

  close(code = 1000, reason = '') {
    this.readyState = 3;
    queueMicrotask(() => this.onclose({ code, reason, wasClean: true }));
  }
}

beforeEach(() => {
  requests = [];
  sockets = [];
  globalThis.WebSocket = FakeSocket;
  globalThis.CloseEvent ??= class extends Event {};
  globalThis.fetch = async (address, init) => {
    requests.push({ address: address.href, ...init });
    return new Response('{"data":{}}');
  };
});

async function collect(fetcher, source, headers) {
  const results = [];
  const documentAST = parse(source);
  for await (const result of fetcher({ query: source, operationName: 'S' }, { headers, documentAST })) results.push(structuredClone(result));
  return results;
}

test('every tab sends the token of the page, and one may have its own', async () => {
  let token;
  const fetcher = createFetcher(url, { token: () => token });
  await fetcher(query, {});
  token = 'one';
  await fetcher(query, { headers: { 'X-Other': 'x' } });
  await fetcher(query, { headers: { authorization: 'Bearer two' } });
  const sent = requests.map(({ headers }) => headers.Authorization ?? headers.authorization);
  assert.deepEqual(sent, [undefined, 'Bearer one', 'Bearer two']);
  assert.ok(requests.every(({ address }) => address === url.href));
});

test('the page is told that its token does not count, and not that a tab\'s own does not', async () => {
  const said = [];
  globalThis.fetch = async () => new Response('{"errors":[{"message":"not known here"}]}', { status: 401 });
  const fetcher = createFetcher(url, { token: () => 'one', refused: (...told) => said.push(...told) });
  await fetcher(query, { headers: { Authorization: 'Bearer two' } });
  assert.deepEqual(said, []);
  await fetcher(query, {});
  assert.deepEqual(said, ['not known here', 'one']);
});

test('the page is told that a socket was closed for its token', async () => {
  const said = [];
  class Refusing extends FakeSocket {
    send() {
      queueMicrotask(() => this.onclose(Object.assign(new CloseEvent('close'), { code: 4403, reason: 'revoked' })));
    }
  }
  globalThis.WebSocket = Refusing;
  const fetcher = createFetcher(url, { token: () => 'one', refused: why => said.push(why) });
  await assert.rejects(collect(fetcher, 'subscription S { runUpdated(runId: "x") { status } }'), /4403 revoked/);
  assert.deepEqual(said, ['revoked']);
});

test('an answer without JSON is an error that says what came', async () => {
  globalThis.fetch = async () => new Response('<h1>Bad gateway</h1>', { status: 502 });
  await assert.rejects(createFetcher(url)(query, {}), /502.*Bad gateway/);
});

test('a subscription goes to the same origin, with the headers in connection_init', async () => {
  FakeSocket.answers = [{ runUpdated: { status: 'QUEUED' } }, { runUpdated: { status: 'CLAIMED' } }];
  const results = await collect(createFetcher(url), 'subscription S { runUpdated(runId: "x") { status } }', { Authorization: 'Bearer one' });
  assert.equal(sockets[0].address, 'ws://127.0.0.1:8080/graphql');
  assert.deepEqual(sockets[0].sent[0], { type: 'connection_init', payload: { Authorization: 'Bearer one' } });
  assert.deepEqual(results.map(({ data }) => data.runUpdated.status), ['QUEUED', 'CLAIMED', 'CLAIMED']);
  assert.deepEqual(results.map(({ extensions }) => Boolean(extensions?.console)), [false, false, true]);
});

test('a log stream is shown as the list of its items, under its alias', async () => {
  FakeSocket.answers = [{ log: { text: 'a' } }, { log: { text: 'b' } }];
  const results = await collect(createFetcher(url), 'subscription S { log: runEvents(runId: "x") { __typename } }');
  assert.deepEqual(results.at(-1).data.log, [{ text: 'a' }, { text: 'b' }]);
});

test('the answer of a mutation is handed on, and no other', async () => {
  const told = [];
  globalThis.fetch = async () => new Response('{"data":{"x":{"id":"1"}}}');
  const fetcher = createFetcher(url, { made: data => told.push(data) });
  await fetcher(query, { documentAST: parse('{ x { id } }') });
  await fetcher({ query: '', operationName: 'M' }, { documentAST: parse('query Q { x { id } } mutation M { x { id } }') });
  await fetcher({ query: '', operationName: 'Q' }, { documentAST: parse('query Q { x { id } } mutation M { x { id } }') });
  assert.deepEqual(told, [{ x: { id: '1' } }]);
});

test('headers are not written to the browser', () => {
  const written = new Map();
  globalThis.localStorage = { setItem: (key, value) => written.set(key, value) };
  storage.setItem('graphiql:headers', 'Bearer one');
  storage.setItem('graphiql:queries', JSON.stringify({ queries: [{ query: '{a}', headers: 'Bearer one' }] }));
  storage.setItem('graphiql:tabState', JSON.stringify({ tabs: [{ query: '{a}', headers: 'Bearer one' }] }));
  storage.setItem('graphiql:theme', 'dark');
  assert.ok(!JSON.stringify([...written]).includes('Bearer'));
  assert.equal(JSON.parse(written.get('graphiql:tabState')).tabs[0].headers, null);
  assert.equal(written.get('graphiql:theme'), 'dark');
});
