import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ranOf } from '../parts/command-line.ts'
import { createThrowAwayFolder, forEachEngine } from '../parts/engines.ts'
import { gatewayCommand } from '../parts/program.ts'
import { startTenancy } from './tenancy.ts'

// Two processes that apply one file at the same time.

const token = 'tg-admin-0123456789abcdef0123456789abcdef'

const first = `workspaces:
  - name: acme
    limits: { requests_per_minute: 600 }
    projects:
      - { name: web, keys: [{ name: ci }] }
`
/** A second key and a second project of what exists by then. */
const second = `workspaces:
  - name: acme
    limits: { requests_per_minute: 600 }
    projects:
      - { name: web, keys: [{ name: ci }, { name: cd }] }
      - { name: mobile, keys: [{ name: ci }] }
`

/** Forwards to the gateway, and holds back POSTs until two have arrived: by then both runs have made their plans. */
function startBarrier(gatewayUrl: string) {
  let posts = 0
  let both = Promise.withResolvers<void>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.method === 'POST') {
        if (++posts === 2) both.resolve()
        await both.promise
      }
      const { pathname, search } = new URL(request.url)
      const { method, headers } = request
      const body = method === 'GET' ? null : await request.text()
      const answer = await fetch(`${gatewayUrl}${pathname}${search}`, { method, headers, body })
      return new Response(await answer.text(), {
        status: answer.status,
        headers: { 'content-type': 'application/json' },
      })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    close() {
      posts = 0
      both = Promise.withResolvers<void>()
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

forEachEngine((engine) => {
  test('one of two runs of a file at the same time makes the changes, and the other one says that it did not', async () => {
    await using tenancy = await startTenancy({ engine, env: { TOLLGATE_ADMIN_TOKEN: token } })
    await using barrier = startBarrier(tenancy.gateway.url)
    using folder = createThrowAwayFolder()
    const run = (url: string, ...args: string[]) => {
      const env = { PATH: process.env.PATH ?? '', HOME: folder.path, TOLLGATE_URL: url, TOLLGATE_ADMIN_TOKEN: token }
      const command = [...gatewayCommand(), 'config', ...args]
      return ranOf(Bun.spawn(command, { cwd: folder.path, env, stdio: ['ignore', 'pipe', 'pipe'] }))
    }
    const cases = [
      { text: first, keys: 1, says: 'workspace acme: There is already a workspace named acme.' },
      { text: second, keys: 2, says: 'key acme/web/cd: There is already a key named cd.' },
    ]
    for (const { text, keys, says } of cases) {
      barrier.close()
      writeFileSync(join(folder.path, 'file.yaml'), text)
      const apply = () => run(barrier.url, 'apply', 'file.yaml', '--yes')
      const [won, lost] = (await Promise.all([apply(), apply()])).sort((a, b) => a.exit - b.exit)
      expect(won).toMatchObject({ exit: 0 })
      expect(won?.out.trimEnd().split('\n')).toHaveLength(keys)
      expect([lost?.exit, lost?.out]).toEqual([2, ''])
      expect(lost?.err).toContain(says)
      expect(lost?.err).toMatch(/^0 of \d made\.$/m)
      const again = await run(tenancy.gateway.url, 'plan', 'file.yaml')
      expect([again.exit, again.out]).toEqual([0, 'Nothing to change.\n'])
    }
  })

  test('a file may create a key again whose namesake is revoked, and other callers may use a name twice', async () => {
    await using tenancy = await startTenancy({ engine, env: { TOLLGATE_ADMIN_TOKEN: token } })
    const { projectId } = await tenancy.tenant()
    const byFile = { authorization: `Bearer ${token}`, 'x-tollgate-managed-by': 'file' }
    const create = async () => await tenancy.api('POST', `/api/projects/${projectId}/keys`, { name: 'ci' }, byFile)
    const { status, body } = await create()
    expect(status).toBe(201)
    expect((await create()).status).toBe(400)
    await tenancy.api('POST', `/api/keys/${body.id}/revoke`, {}, byFile)
    expect((await create()).status).toBe(201)
    for (let i = 0; i < 2; i++) await tenancy.must('POST', `/api/projects/${projectId}/keys`, { name: 'twin' })
  })
})
