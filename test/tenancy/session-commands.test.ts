// `tollgate sessions` against a whole gateway.

import { expect, test } from 'bun:test'
import { runHere } from '../parts/command-line.ts'
import { startTenancy } from './tenancy.ts'

const token = 'tg-admin-0123456789abcdef0123456789abcdef'

test('sessions are listed with their browser, and one of them is ended', async () => {
  await using tenancy = await startTenancy({ env: { TOLLGATE_ADMIN_TOKEN: token } })
  const { url, dataFolder } = tenancy.gateway
  const run = (...args: string[]) =>
    runHere(args, { env: { TOLLGATE_URL: url, TOLLGATE_ADMIN_TOKEN: token }, cwd: dataFolder })
  const signIn = async (client: string) => {
    const headers = { origin: url, 'sec-fetch-site': 'same-origin', 'user-agent': client }
    const sent = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }
    const response = await fetch(`${url}/console/session`, { ...sent, body: JSON.stringify({ token }) })
    return response.headers.get('set-cookie')?.split(';')[0] ?? ''
  }
  const cookies = [await signIn('browser-one'), await signIn('browser-two')]
  const listed = await run('sessions')
  expect([listed.exit, listed.err]).toEqual([0, ''])
  const line = listed.out.split('\n').find((each) => each.includes('browser-one')) ?? ''
  expect(listed.out).toContain('browser-two')
  const [id = ''] = /ses_\w+/.exec(line) ?? []
  expect((await run('sessions', 'end', id)).out).toBe(`${id} is signed out.\n`)
  expect((await run('sessions', 'end', id)).exit).toBe(4)
  const statuses = cookies.map(async (cookie) => (await fetch(`${url}/api/me`, { headers: { cookie } })).status)
  expect(await Promise.all(statuses)).toEqual([401, 200])
  expect((await run('sessions')).out).not.toContain('browser-one')
})
