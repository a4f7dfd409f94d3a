import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onSqlite, openWorld } from '../../test/parts/command-line.ts'
import { managementToken } from '../../test/parts/management.ts'

// Some ten processes per test, on a machine that may be busy.

onSqlite((engine) => {
  describe('what goes wrong has an exit code and something to try', () => {
    test('usage 2, not authorised 3, not found 4, limit 5, nobody there 1', async () => {
      await using world = await openWorld(engine)
      await world.management.make('/api/workspaces', { name: 'acme' })
      const ran = (args: string, env = {}) => world.run(args, { env })
      expect(await ran('wallet topup five')).toEqual({
        exit: 2,
        out: '',
        err: 'tollgate: AMOUNT must be an amount in USD such as 25 or 0.50, not "five".\nTry: tollgate wallet topup --help\n',
      })
      expect(await ran('wallet topup 0')).toMatchObject({
        exit: 2,
        err: expect.stringContaining('AMOUNT must be above zero, not "0".'),
      })
      const unauthorized = await ran('keys', { TOLLGATE_ADMIN_TOKEN: 'not-the-token-0123456789' })
      expect(unauthorized.exit).toBe(3)
      expect(unauthorized.err).toMatch(/This is not the management token.*\nTry: TOLLGATE_ADMIN_TOKEN=/)
      expect(await ran('keys', { TOLLGATE_ADMIN_TOKEN: '' })).toMatchObject({
        exit: 3,
        err: expect.stringMatching(/there is no management token: .* cannot be read\.\nTry: /),
      })
      expect(await ran('keys revoke key_00000000000000000000000000')).toMatchObject({
        exit: 4,
        err: expect.stringContaining('There is no key key_0'),
      })
      expect(await ran('explain req_nothing')).toMatchObject({ exit: 4 })
      expect(await ran('keys', { TOLLGATE_URL: 'http://127.0.0.1:1' })).toEqual({
        exit: 1,
        out: '',
        err: 'tollgate: nothing answers at http://127.0.0.1:1.\nTry: npm start, or TOLLGATE_URL=http://HOST:PORT of a running gateway\n',
      })
      expect(await ran('keys', { TOLLGATE_URL: 'nonsense' })).toMatchObject({
        exit: 1,
        err: expect.stringContaining('TOLLGATE_URL'),
      })
    })

    test('a 402 and a 429 of the gateway are 5, and what is no gateway is said to be none', async () => {
      await using world = await openWorld(engine)
      const error = { message: 'Slow\u001b[2J down.', type: 't', param: null, code: 'LIMIT_EXCEEDED' }
      using server = Bun.serve({
        port: 0,
        hostname: '127.0.0.1',
        fetch(request) {
          const { pathname } = new URL(request.url)
          if (pathname === '/api/keys') return Response.json({ error }, { status: 429 })
          if (pathname === '/api/audit') return Response.json({ error }, { status: 402 })
          if (pathname === '/api/requests') return Response.redirect('http://127.0.0.1:1/', 302)
          return new Response('<html>', { status: 200 })
        },
      })
      const env = { TOLLGATE_URL: `http://127.0.0.1:${server.port}/v1/` }
      // The sequence that would clear the screen arrives as text.
      expect(await world.run('keys', { env })).toMatchObject({
        exit: 5,
        err: expect.stringContaining('Slow\ufffd[2J down.'),
      })
      expect((await world.run('audit', { env })).exit).toBe(5)
      for (const command of ['models', 'requests']) {
        expect(await world.run(command, { env })).toMatchObject({
          exit: 1,
          err: expect.stringContaining('not as a Tollgate'),
        })
      }
    })

    test('the token of the data folder is used for this machine', async () => {
      await using world = await openWorld(engine)
      await world.management.make('/api/workspaces', { name: 'acme' })
      mkdirSync(join(world.folder, 'data'))
      writeFileSync(join(world.folder, 'data', 'admin-token'), `${managementToken}\n`)
      expect((await world.json('workspaces', { env: { TOLLGATE_ADMIN_TOKEN: '' } })).data).toHaveLength(1)
    })
  })
})
