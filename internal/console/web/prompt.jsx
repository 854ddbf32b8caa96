import { useState } from 'react';

/** Asks for the token, and says where it lies. */
export function TokenPrompt({ refusal, give }) {
  const [problem, setProblem] = useState('');
  const submit = event => {
    event.preventDefault();
    const text = new FormData(event.currentTarget).get('token');
    if (!give(text)) setProblem('This is no token. One is a line of 24 characters or more without spaces, such as rse_…');
  };
  return (
    <main className="rouse-prompt">
      <form onSubmit={submit}>
        <h1>Rouse asks for a token</h1>
        {refusal && <p role="alert">The server refused the one that this page had: {refusal}</p>}
        <p>
          The owner of this server finds one in the file <code>token</code> of its data folder: <code>./.rouse/token</code> where it was started,{' '}
          <code>/var/lib/rouse/token</code> when root started it, or below its <code>--data-dir</code>. On a terminal, the address that the
          server printed has the token in it. Others are made with <code>rouse token create</code>.
        </p>
        <label>
          Token
          <input name="token" type="password" autoComplete="off" spellCheck="false" autoFocus required />
        </label>
        <button type="submit">Open the console</button>
        {problem && <p role="alert">{problem}</p>}
        <p className="rouse-note">It is kept in this tab until the tab is closed, and sent in headers alone.</p>
      </form>
    </main>
  );
}
