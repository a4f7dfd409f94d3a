// Somebody at the console of several replicas, as a page does it behind a balancer: one address, any replica.

import { adminToken } from './fleet.ts'

export interface ConsoleVisit {
  /** By the word of one replica. */
  isSignedIn(url: string): Promise<boolean>
  signOutEverywhere(url: string): Promise<void>
}

/** The balancer's, by which the browser files its cookie. */
const host = 'gate.test:8080'

export async function signIn(url: string): Promise<ConsoleVisit> {
  const call = async (at: string, method: string, path: string, cookie: string, body?: object): Promise<Response> => {
    const headers = {
      ...{ host, cookie, origin: `http://${host}` },
      ...{ 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
    }
    for (;;) {
      const response = await fetch(at + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
      // "Try again in a moment": the database of a busy machine.
      if (response.status !== 503) return response
      await response.text()
      await Bun.sleep(50)
    }
  }
  const opened = await call(url, 'POST', '/console/session', '', { token: adminToken })
  const cookie = opened.headers.get('set-cookie')?.split(';')[0]
  if (cookie === undefined) throw new Error(`the sign-in failed: ${opened.status} ${await opened.text()}`)
  return {
    isSignedIn: async (at) => (await call(at, 'GET', '/api/workspaces', cookie)).status === 200,
    async signOutEverywhere(at) {
      const answer = await call(at, 'DELETE', '/console/sessions', cookie)
      if (!answer.ok) throw new Error(`not everybody was signed out: ${answer.status} ${await answer.text()}`)
    },
  }
}
