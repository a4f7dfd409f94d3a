// The path that a request is matched and authorised by. `request.url` is read as text, since an unusual Host makes it a
// bare path. Paths that the runtime would normalise are refused before (`listen.ts`), so this is the path as it was sent.

/** Everything between the authority and the query, as sent. A bare path has no authority, whatever its query says. */
export function pathOf(url: string): string {
  const authority = url.startsWith('/') ? -1 : url.indexOf('://')
  const start = authority < 0 ? 0 : url.indexOf('/', authority + 3)
  if (start < 0) return '/'
  for (let at = start; at < url.length; at++) {
    const code = url.charCodeAt(at)
    if (code === 0x3f || code === 0x23) return url.slice(start, at)
  }
  return url.slice(start)
}

/** The query string of a request, parsed; for the few endpoints that take one. */
export function queryOf(url: string): URLSearchParams {
  const mark = url.indexOf('?')
  return new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
}

/** More than any path that is served has; deeper ones are refused. */
export const segmentsMax = 16

/**
 * Whether a segment of a path, percent-decoded, means the same to this gateway, to the runtime and to a proxy in front. It
 * does not where one of them removes dot segments (`..`, `%2e%2e`, `a%2F..%2Fb`), reads a backslash as a slash, or ends the
 * path at a `#`. U+FFFD is what the runtime makes of a segment that it cannot decode, whatever else stands in it.
 */
export function isPlainSegment(decoded: string): boolean {
  return !/[\\#\ufffd]|(?:^|\/)\.{1,2}(?:\/|$)/.test(decoded)
}

/**
 * Base-URL habits differ between clients: some add `/v1` to a base that has it, some leave it out, some end with a slash.
 * The public paths are taken in all these forms and named here in one, e.g. `/chat/completions`.
 */
export function publicPath(path: string): string {
  let bare = path
  for (let times = 0; times < 2 && bare.startsWith('/v1/'); times++) bare = bare.slice(3)
  return bare.length > 1 && bare.endsWith('/') ? bare.slice(0, -1) : bare
}
