// The one function that turns a request into the path it is matched and authorised by. The runtime's own URL is not
// used: it folds `..` in one place and not in another, and a strange Host makes it a bare path.

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

/**
 * Base-URL habits differ between clients: some add `/v1` to a base that has it, some leave it out, some join the two with
 * a slash too many. The public paths are taken in all these forms and named here in one, e.g. `/chat/completions`.
 */
export function publicPath(path: string): string {
  let bare = path.includes('//') ? path.replace(/\/{2,}/g, '/') : path
  for (let times = 0; times < 2 && bare.startsWith('/v1/'); times++) bare = bare.slice(3)
  return bare.length > 1 && bare.endsWith('/') ? bare.slice(0, -1) : bare
}
