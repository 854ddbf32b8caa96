import { useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { operations } from './operations.js';

// A list of the example operations, since tabs that were closed or edited do not come back by themselves.
function Examples() {
  const { addTab } = useGraphiQLActions();
  const queryEditor = useGraphiQL(state => state.queryEditor);
  const variableEditor = useGraphiQL(state => state.variableEditor);
  const open = ({ query, variables }) => {
    addTab();
    queryEditor?.setValue(query);
    variableEditor?.setValue(variables);
  };
  return (
    <section aria-label="Examples">
      <div className="graphiql-doc-explorer-title">Examples</div>
      <ul className="rouse-examples">
        {operations.map(operation => (
          <li key={operation.title}>
            <button type="button" onClick={() => open(operation)}>
              {operation.title}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Icon() {
  return (
    <svg viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round">
      <path d="M9 6h11M9 12h11M9 18h11M4.5 6h.01M4.5 12h.01M4.5 18h.01" />
    </svg>
  );
}

export const EXAMPLES_PLUGIN = { title: 'Examples', icon: Icon, content: Examples };
