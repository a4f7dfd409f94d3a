// Somebody at the console of one replica, as a page of its own does it.

import { adminToken } from './fleet.ts'

export interface ConsoleVisit {
  isSignedIn(): Promise<boolean>
  signOutEverywhere(): Promise<void>
}

export async function signIn(url: string): Promise<ConsoleVisit> {
  const call = (method: string, path: string, cookie: string, body?: object): Promise<Response> =>
    fetch(url + path, {
      method,
      headers: { cookie, origin: url, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  const opened = await call('POST', '/console/session', '', { token: adminToken })
  const cookie = opened.headers.get('set-cookie')?.split(';')[0]
  if (cookie === undefined) throw new Error(`nobody was signed in: ${opened.status} ${await opened.text()}`)
  return {
    isSignedIn: async () => (await call('GET', '/api/workspaces', cookie)).status === 200,
    async signOutEverywhere() {
      const answer = await call('DELETE', '/console/sessions', cookie)
      if (!answer.ok) throw new Error(`not everybody was signed out: ${answer.status} ${await answer.text()}`)
    },
  }
}
