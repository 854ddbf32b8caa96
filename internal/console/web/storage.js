const NAMESPACE = 'graphiql:';

// What GraphiQL stores as JSON with the headers in it; its history does so even where headers are not to be kept.
const WITH_HEADERS = new Set(['tabState', 'queries', 'favorites'].map(name => NAMESPACE + name));

const withoutHeaders = (key, value) => (key === 'headers' ? null : value);

/** The browser's storage for GraphiQL, without the headers, so that a token is never written to disk. */
export const storage = {
  getItem: key => localStorage.getItem(key),
  setItem(key, value) {
    if (key === `${NAMESPACE}headers`) return;
    localStorage.setItem(key, WITH_HEADERS.has(key) ? JSON.stringify(JSON.parse(value, withoutHeaders)) : value);
  },
  removeItem: key => localStorage.removeItem(key),
  get length() {
    return ownKeys().length;
  },
  clear() {
    for (const key of ownKeys()) localStorage.removeItem(key);
  },
};

function ownKeys() {
  return Object.keys(localStorage).filter(key => key.startsWith(NAMESPACE));
}
