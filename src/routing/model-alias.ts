// Names under which Claude Code can find a model. Its picker keeps ids that begin with `claude` or `anthropic` (newer
// versions: contain one), so it is shown the others behind a prefix, and the prefix is taken off again before anybody
// asks what a key may use. Everybody else sees plain ids.

/** Begins so in every version (BerriAI/litellm#40515, 2026-09). */
const prefix = 'claude/'

/** Claude Code's word for a long context, which the beta flag beside it asks for (tombii/better-ccflare#243, 2026-09). */
const windowSuffix = /\[1m\]$/i

/** As it is listed for a client. */
export function listedId(id: string, headers: Headers): string {
  const isPicker = /^claude-(cli|code)\//i.test(headers.get('user-agent') ?? '')
  return isPicker && !/claude|anthropic/i.test(id) ? prefix + id : id
}

/** What is left of an id without what clients put around it. */
export function plainId(id: string): string {
  const plain = id.replace(windowSuffix, '')
  return plain.startsWith(prefix) ? plain.slice(prefix.length) : plain
}
