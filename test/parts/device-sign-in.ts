// A person with a console session, and a device that they sign in, over the wire as Claude Code and `tollgate login` do it.

import { callManagement, type Reply } from './manage.ts'

type Headers = Readonly<Record<string, string>>

/** The load balancer's address: the session cookie's name follows from it, and is the same on each replica. */
const host = 'gate.test:8080'
export const fromPage: Headers = { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }

/** Each call has its own client address: otherwise the delay after wrong codes of one address would add up. */
export const fromAnywhere = (): Headers => ({
  'x-forwarded-for': `10.${crypto.getRandomValues(new Uint8Array(3)).join('.')}`,
})

/** As a browser would send them. */
export const cookiesOf = (response: Response) =>
  response.headers
    .getSetCookie()
    .map((cookie) => cookie.slice(0, cookie.indexOf(';')))
    .join('; ')

/** Accepts an invitation; the headers of the new console session. */
export async function acceptInvitation(url: string, link: string): Promise<Headers> {
  const invitation = new URL(link).searchParams.get('i')
  const opened = await fetch(`${url}/console/session`, {
    method: 'POST',
    headers: { ...fromPage, 'content-type': 'application/json' },
    body: JSON.stringify({ invitation, name: 'Ada', password: 'correct horse battery' }),
  })
  const cookie = opened.headers.get('set-cookie')?.split(';')[0]
  if (cookie === undefined) throw new Error(`the invitation failed: ${opened.status} ${await opened.text()}`)
  return { ...fromPage, cookie }
}

export async function postForm(url: string, path: string, form: Headers, headers: Headers = {}): Promise<Reply> {
  const body = new URLSearchParams(form)
  const response = await fetch(url + path, { method: 'POST', headers: { host, ...fromAnywhere(), ...headers }, body })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: text === '' ? undefined : JSON.parse(text) }
}

export const startDevice = async (url: string, form: Headers = { surface: 'claude_code' }) =>
  (await postForm(url, '/oauth/device_authorization', form)).body as {
    readonly device_code: string
    readonly user_code: string
  }

export const pollDevice = (url: string, deviceCode: string) =>
  postForm(url, '/oauth/token', {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: deviceCode,
  })

export const refresh = (url: string, token: string) =>
  postForm(url, '/oauth/token', { grant_type: 'refresh_token', refresh_token: token })

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly expires_in: number
  readonly email: string
}

/** Starts, approves and polls. */
export async function signInDevice(url: string, session: Headers, projectId: string): Promise<Tokens> {
  const { device_code: deviceCode, user_code: code } = await startDevice(url)
  const body = { code, project_id: projectId }
  await callManagement(url, session, ['POST', '/api/me/device-grants/approve', body])
  const { status, text, body: tokens } = await pollDevice(url, deviceCode)
  if (status !== 200) throw new Error(`the device was not signed in: ${status} ${text}`)
  return tokens
}
