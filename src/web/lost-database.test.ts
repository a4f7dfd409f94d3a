import { afterEach, beforeEach, expect, test } from 'bun:test'
import { startWeb, type WebHarness } from '../../test/parts/web.ts'

let web: WebHarness
let cookie: string
beforeEach(async () => {
  web = await startWeb()
  cookie = (await signIn(web.token)).headers.get('set-cookie')?.split(';')[0] ?? ''
  await web.loseDatabase()
})
afterEach(() => web.stop())

function signIn(token: string): Promise<Response> {
  return fetch(`${web.url}/console/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: web.url },
    body: JSON.stringify({ token }),
  })
}

test('the console says that the database is unavailable', async () => {
  const page = await fetch(`${web.url}/console`, { headers: { cookie } })
  expect(page.status).toBe(503)
  expect(await page.text()).toContain('The database cannot be reached')
})

test('signing in fails with the reason', async () => {
  const answer = await signIn(web.token)
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({ error: { code: 'OVERLOADED' } })
})

test('the catalog is shown as to a visitor', async () => {
  const page = await fetch(`${web.url}/`, { headers: { cookie } })
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('sandbox/echo')
})
