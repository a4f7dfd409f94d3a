import { afterEach, beforeEach, expect, test } from 'bun:test'
import { startWeb, type WebHarness } from '../../test/parts/web.ts'

let web: WebHarness
beforeEach(async () => {
  web = await startWeb()
})
afterEach(() => web.stop())

function call(method: 'POST' | 'DELETE', body?: object, cookie?: string): Promise<Response> {
  return fetch(`${web.url}/console/session`, {
    method,
    headers: { 'content-type': 'application/json', origin: web.url, ...(cookie && { cookie }) },
    ...(body && { body: JSON.stringify(body) }),
  })
}

async function signIn(): Promise<string> {
  return (await call('POST', { token: web.token })).headers.get('set-cookie')?.split(';')[0] ?? ''
}

test('signing out without a session succeeds and is not recorded in the audit log', async () => {
  for (const cookie of [undefined, 'tollgate-session=made-up']) {
    const answer = await call('DELETE', undefined, cookie)
    expect([answer.status, await answer.json()]).toEqual([200, { signed_in: false }])
  }
  expect(web.events).toEqual([])
  const cookie = await signIn()
  await call('DELETE', undefined, cookie)
  await call('DELETE', undefined, cookie)
  expect(web.events).toEqual(['signed in by token', 'signed out'])
})

test('wrong links are slowed down, and a right one signs in while others guess from the same address', async () => {
  const link = await web.sessions.createLink()
  web.isBraked = true
  const slowed = await call('POST', { link: 'guess' })
  expect(slowed.status).toBe(429)
  expect(slowed.headers.get('retry-after')).toBe('1')
  expect((await call('POST', { link })).status).toBe(200)
  web.isBraked = false
  expect((await call('POST', { link })).status).toBe(401)
})

test('without the database the console says so, signing in fails, and the catalog is shown as to a visitor', async () => {
  const cookie = await signIn()
  await web.loseDatabase()
  const page = await fetch(`${web.url}/console`, { headers: { cookie } })
  expect(page.status).toBe(503)
  expect(await page.text()).toContain('The database cannot be reached')
  const answer = await call('POST', { token: web.token })
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({ error: { code: 'OVERLOADED' } })
  const catalog = await fetch(`${web.url}/`, { headers: { cookie } })
  expect(catalog.status).toBe(200)
  expect(await catalog.text()).toContain('sandbox/echo')
})
