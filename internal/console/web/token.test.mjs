import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTokens } from './token.js';

const TOKEN = `rse_${'a1'.repeat(22)}`;

// A window with an address, a session storage and a history that remembers what it was told.
function pageAt(hash, kept = new Map()) {
  const shown = [];
  return {
    location: { hash, pathname: '/', search: '?query=x' },
    history: { state: null, replaceState: (_state, _title, address) => shown.push(address) },
    sessionStorage: { getItem: key => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: key => kept.delete(key) },
    shown,
  };
}

test('the token moves from the address into the session', () => {
  const kept = new Map();
  const page = pageAt(`#token=${TOKEN}`, kept);
  const tokens = createTokens(page);
  assert.equal(tokens.takeFromAddress(), true);
  assert.equal(tokens.get(), TOKEN);
  assert.deepEqual(page.shown, ['/?query=x']);
  assert.equal(createTokens(pageAt('', kept)).get(), TOKEN);
});

test('an address without a token is left as it is', () => {
  const page = pageAt('#other');
  assert.equal(createTokens(page).takeFromAddress(), false);
  assert.deepEqual(page.shown, []);
});

test('what is no token is taken out of the address, and not kept', () => {
  const page = pageAt('#token=short');
  const tokens = createTokens(page);
  assert.equal(tokens.takeFromAddress(), false);
  assert.deepEqual(page.shown, ['/?query=x']);
  assert.equal(tokens.get(), undefined);
});

test('a pasted token may have spaces, its scheme or the whole header around it', () => {
  for (const text of [TOKEN, ` ${TOKEN}\n`, `Bearer ${TOKEN}`, `Authorization: Bearer ${TOKEN}`]) {
    const tokens = createTokens(pageAt(''));
    assert.equal(tokens.set(text), true);
    assert.equal(tokens.get(), TOKEN);
  }
  for (const text of ['', 'two words of text that are no token', '/var/lib/rouse/token', `${TOKEN}é`]) assert.equal(createTokens(pageAt('')).set(text), false, text);
});

test('a token that was refused is forgotten', () => {
  const kept = new Map();
  const tokens = createTokens(pageAt(`#token=${TOKEN}`, kept));
  tokens.takeFromAddress();
  tokens.forget();
  assert.equal(tokens.get(), undefined);
  assert.equal(kept.size, 0);
});

test('a browser that keeps nothing still works until the page is loaded again', () => {
  const page = pageAt('');
  page.sessionStorage = new Proxy({}, { get: () => () => { throw new Error('denied'); } });
  const tokens = createTokens(page);
  assert.equal(tokens.set(TOKEN), true);
  assert.equal(tokens.get(), TOKEN);
});
