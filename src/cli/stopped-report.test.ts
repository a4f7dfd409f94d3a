import { expect, test } from 'bun:test'
import { gatewayCommand } from '../../test/parts/program.ts'

test('a long report says how long it takes, and Ctrl-C ends it with a sentence and closes its connection', async () => {
  const asked = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      if (request.url.includes('/api/usage/estimate')) return Response.json({ rows: 1_200_000, seconds: 10 })
      request.signal.addEventListener('abort', () => closed.resolve())
      asked.resolve()
      await closed.promise
      return new Response('')
    },
  })
  const child = Bun.spawn([...gatewayCommand(), 'usage', '--by', 'tag:team'], {
    env: {
      PATH: process.env.PATH ?? '',
      TOLLGATE_URL: server.url.origin,
      TOLLGATE_ADMIN_TOKEN: 'tg-admin-made-up',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await asked.promise
  child.kill('SIGINT')
  const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  expect([exit, out, err.split('\n')]).toEqual([
    130,
    '',
    [
      'Reading 1,200,000 requests from the log: about 10 s. Ctrl-C stops it.',
      'Stopped before the report was complete.',
      '',
    ],
  ])
  await closed.promise
})
