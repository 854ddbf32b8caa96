import assert from 'node:assert/strict';
import { test } from 'node:test';
import { known, note, offers, subscribe } from './ids.js';

const id = (kind, digit) => `${kind}_${digit.repeat(26)}`;

test('the newest id of each kind is offered where a placeholder stands for it', () => {
  let told = 0;
  subscribe(() => told++);
  note({ createWorkspace: { workspace: { id: id('wsp', '1'), name: 'Mine' }, userErrors: [] } });
  note({ createAgent: { agent: null, userErrors: [{ message: 'no' }] } });
  note({ wakeAgent: { wakeupRequest: { id: id('wkp', '1'), run: { id: id('run', '2') } } } });
  note({ wakeAgent: { wakeupRequest: { id: id('wkp', '1'), run: { id: id('run', '3') } } } });
  assert.equal(told, 3);
  assert.deepEqual(offers('{"a": "PASTE_WORKSPACE_ID", "b": "PASTE_AGENT_ID", "c": "PASTE_WORKSPACE_ID"}'), [
    { placeholder: 'PASTE_WORKSPACE_ID', id: id('wsp', '1'), name: 'Mine' },
  ]);
  assert.deepEqual(offers('{"runId": "PASTE_RUN_ID"}'), [{ placeholder: 'PASTE_RUN_ID', id: id('run', '3'), name: undefined }]);
  assert.deepEqual(offers('{}'), []);
  const before = known();
  note({ node: { id: 'not an id' } });
  assert.equal(known(), before);
});
