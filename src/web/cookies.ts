// The session's cookie: its name, its attributes and how it is read. Behind https it is bound to the host and never
// leaves encrypted; on plain http its name has the port, because browsers share cookies between ports.

export interface Visit {
  readonly isSecure: boolean
  /** Host and port as the browser knows them. */
  readonly host: string
}

export interface VisitClues {
  /** What the operator says the gateway is reached by. */
  readonly publicUrl: string | undefined
  /** What a trusted proxy says the browser speaks; undefined = there is none. */
  readonly forwardedProto: string | undefined
}

export function visitOf(request: Request, { publicUrl, forwardedProto }: VisitClues): Visit {
  const host = request.headers.get('host') ?? URL.parse(request.url)?.host ?? ''
  const stated = publicUrl === undefined ? null : URL.parse(publicUrl)
  const isSecure = stated?.host === host ? stated.protocol === 'https:' : forwardedProto === 'https'
  return { isSecure, host }
}

/** Where the browser says it is; for addresses in examples. */
export function originOf({ isSecure, host }: Visit): string {
  return `${isSecure ? 'https' : 'http'}://${host}`
}

/** Plain http that leaves this machine: whoever is on the way can read it. */
export function isExposed({ isSecure, host }: Visit): boolean {
  return !isSecure && !/^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i.test(host)
}

export function sessionCookieName({ isSecure, host }: Visit): string {
  if (isSecure) return '__Host-tollgate'
  const port = /:(\d+)$/.exec(host)?.[1]
  return port === undefined ? 'tollgate' : `tollgate-${port}`
}

export function setSessionCookie(visit: Visit, value: string, maxAgeSeconds: number): string {
  const secure = visit.isSecure ? '; Secure' : ''
  const name = sessionCookieName(visit)
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}${secure}`
}

export function readCookie(headers: Headers, name: string): string | undefined {
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return undefined
}
