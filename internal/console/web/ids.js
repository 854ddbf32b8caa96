// The ids of records that mutations of this page made or touched, newest of each kind, for the placeholders of other tabs.
const KINDS = { wsp: 'WORKSPACE', agt: 'AGENT', rtn: 'ROUTINE', run: 'RUN' };
const ID = /^([a-z]{3})_[0-9a-z]{26}$/;

let snapshot = new Map(); // kind → { id, name }
const listeners = new Set();

/** Takes the ids out of a mutation's answer. */
export function note(data) {
  const before = snapshot;
  walk(data);
  if (snapshot !== before) listeners.forEach(tell => tell());
}

function walk(value) {
  if (value === null || typeof value !== 'object') return;
  const kind = typeof value.id === 'string' && KINDS[ID.exec(value.id)?.[1]];
  if (kind && snapshot.get(kind)?.id !== value.id) snapshot = new Map(snapshot).set(kind, { id: value.id, name: value.name ?? value.title });
  Object.values(value).forEach(walk);
}

/** For useSyncExternalStore. */
export const subscribe = tell => {
  listeners.add(tell);
  return () => listeners.delete(tell);
};
export const known = () => snapshot;

/** What the text of a tab's variables needs, and is known: [{ placeholder, id, name }]. */
export function offers(variables, from = snapshot) {
  const placeholders = [...new Set(variables.match(/PASTE_[A-Z]+_ID/g) ?? [])];
  return placeholders.flatMap(placeholder => {
    const found = from.get(placeholder.slice('PASTE_'.length, -'_ID'.length));
    return found ? [{ placeholder, ...found }] : [];
  });
}
