import { useEffect, useMemo, useState } from 'react';
import { GraphiQL } from 'graphiql';
import { HISTORY_PLUGIN } from '@graphiql/plugin-history';
import { Companion } from './companion.jsx';
import { EXAMPLES_PLUGIN } from './examples.jsx';
import { TokenPrompt } from './prompt.jsx';
import { createFetcher } from './fetcher.js';
import { note } from './ids.js';
import { operations } from './operations.js';
import { storage } from './storage.js';

// GraphiQL shows the first tab's query on a first visit, but not its variables.
const firstVisit = storage.getItem('graphiql:tabState') === null;
const link = new URLSearchParams(location.search);
const plugins = [HISTORY_PLUGIN, EXAMPLES_PLUGIN];

/**
 * The page: GraphiQL, and over it the question for a token while the server asks for one that the page has not. GraphiQL comes once a
 * token was taken, since it asks for the schema only then; and it stays when the token ends, with what is being written in it.
 */
export function Console({ tokens, needsToken }) {
  const [opened, setOpened] = useState(!needsToken);
  const [asking, setAsking] = useState(needsToken && !tokens.get());
  const [refusal, setRefusal] = useState('');
  const fetcher = useMemo(() => {
    const refused = (why, used) => {
      if (used !== tokens.get()) return; // an answer to an earlier one
      tokens.forget();
      setRefusal(why);
      setAsking(true);
    };
    return createFetcher(new URL('graphql', document.baseURI), { token: tokens.get, refused, made: note });
  }, []);
  const tryToken = async () => {
    const sent = tokens.get();
    try {
      await fetcher({ query: '{ __typename }' });
    } catch {
      // GraphiQL will say what is wrong with the server.
    }
    if (tokens.get() === sent) setOpened(true);
  };
  useEffect(() => {
    if (!opened && !asking) tryToken();
  }, []);
  const give = text => {
    if (!tokens.set(text)) return false;
    setRefusal('');
    setAsking(false);
    tryToken();
    return true;
  };

  return (
    <>
      {asking && <TokenPrompt refusal={refusal} give={give} />}
      {opened && (
        <GraphiQL
          fetcher={fetcher}
          plugins={plugins}
          storage={storage}
          shouldPersistHeaders={false}
          showPersistHeadersSettings={false}
          defaultTabs={operations.map(({ query, variables }) => ({ query, variables }))}
          defaultQuery=""
          initialQuery={link.get('query') ?? undefined}
          initialVariables={link.get('variables') ?? (firstVisit && !link.has('query') ? operations[0].variables : undefined)}
          defaultEditorToolsVisibility="variables"
          inputValueDeprecation
        >
          <GraphiQL.Logo>
            <span className="rouse-logo">Rouse</span>
          </GraphiQL.Logo>
          <GraphiQL.Footer>
            <Companion />
          </GraphiQL.Footer>
        </GraphiQL>
      )}
    </>
  );
}
