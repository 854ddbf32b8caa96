import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { pick, useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { known, offers, subscribe } from './ids.js';

/** What the page adds to GraphiQL's own behaviour; it shows the ids that the tab may need. */
export function Companion() {
  useLiveTheme();
  useWrappedLines();
  useNewestLine();
  return <Offers />;
}

// GraphiQL looks at the system's colours once; editors then keep theirs when the system switches.
function useLiveTheme() {
  const theme = useGraphiQL(state => state.theme);
  const { setTheme } = useGraphiQLActions();
  useEffect(() => {
    if (theme) return; // a person has chosen one
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const follow = () => setTheme(null);
    dark.addEventListener('change', follow);
    return () => dark.removeEventListener('change', follow);
  }, [theme]);
}

// Hints and log lines are longer than a pane is wide.
function useWrappedLines() {
  const editors = useGraphiQL(pick('queryEditor', 'variableEditor', 'headerEditor', 'responseEditor'));
  useEffect(() => {
    for (const editor of Object.values(editors)) editor?.updateOptions({ wordWrap: 'on', wrappingIndent: 'indent' });
  });
}

// The response pane of a log stream stays at the newest line, until a person scrolls away from it and while they do.
function useNewestLine() {
  const { responseEditor: editor, subscription } = useGraphiQL(pick('responseEditor', 'subscription'));
  const running = useRef(false);
  const following = useRef(true);
  useEffect(() => {
    if (subscription && !running.current) following.current = true;
    running.current = Boolean(subscription);
  }, [subscription]);
  useEffect(() => {
    if (!editor) return;
    let top = 0;
    const isLog = () => /\[$/.test(editor.getModel()?.getValueInRange({ startLineNumber: 3, startColumn: 1, endLineNumber: 4, endColumn: 1 }).trimEnd() ?? '');
    const atEnd = () => editor.getScrollTop() + editor.getLayoutInfo().height >= editor.getScrollHeight() - 24;
    const look = () => requestAnimationFrame(() => {
      following.current = atEnd();
      top = editor.getScrollTop();
    });
    const node = editor.getDomNode();
    const moves = ['wheel', 'keyup', 'pointerup', 'touchend'];
    moves.forEach(move => node.addEventListener(move, look, { passive: true }));
    const change = editor.onDidChangeModelContent(() => {
      if (!isLog()) return;
      if (following.current) editor.revealLine(editor.getModel().getLineCount());
      else editor.setScrollTop(top);
    });
    return () => {
      change.dispose();
      moves.forEach(move => node.removeEventListener(move, look));
    };
  }, [editor]);
}

function Offers() {
  const editor = useGraphiQL(state => state.variableEditor);
  const made = useSyncExternalStore(subscribe, known);
  const [variables, setVariables] = useState('');
  useEffect(() => {
    if (!editor) return;
    const read = () => setVariables(editor.getValue());
    read();
    const change = editor.onDidChangeModelContent(read);
    return () => change.dispose();
  }, [editor]);
  const list = offers(variables, made);
  if (list.length === 0) return null;
  return (
    <div className="rouse-offers" role="group" aria-label="Ids of records that were made">
      {list.map(({ placeholder, id, name }) => (
        <button key={placeholder} type="button" onClick={() => editor.setValue(editor.getValue().replaceAll(placeholder, id))}>
          Use <code>{id}</code>
          {name && ` (${name})`} for <code>{placeholder}</code>
        </button>
      ))}
    </div>
  );
}
