// The token of this page. It lives in the tab's session storage, which ends with the tab and no other origin reads, and goes nowhere but
// into the Authorization header and the payload of connection_init.
const KEY = 'rouse.token';

// What the server can be asked for as a header; anything else was pasted by mistake.
const FORM = /^[!-~]{24,512}$/;

/** Keeps the page's token; page is a window. */
export function createTokens(page) {
  let token;
  const storage = action => {
    try {
      return action(page.sessionStorage);
    } catch {
      return null; // a browser that keeps nothing for this page: the token lives as long as the page
    }
  };
  token = storage(s => s.getItem(KEY)) ?? undefined;

  const tokens = {
    get: () => token,
    /** Takes a token that a person pasted, also with "Bearer " in front; false when it can be none. */
    set(text) {
      const bare = text.trim().replace(/^(authorization:\s*)?bearer\s+/i, '');
      if (!FORM.test(bare)) return false;
      token = bare;
      storage(s => s.setItem(KEY, bare));
      return true;
    },
    forget() {
      token = undefined;
      storage(s => s.removeItem(KEY));
    },
    /** Moves the token out of the address (#token=…), so that it stands in no history, bookmark or screenshot; true when there was one. */
    takeFromAddress() {
      const { hash, pathname, search } = page.location;
      const found = new URLSearchParams(hash.slice(1)).get('token');
      if (found === null) return false;
      page.history.replaceState(page.history.state, '', pathname + search);
      return tokens.set(found);
    },
  };
  return tokens;
}
