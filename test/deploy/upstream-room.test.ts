import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { connect } from '../parts/raw-client.ts'
import { startUpstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { createSite, root } from './site.ts'

// A process and three hundred connections, on a machine that may be busy.

/** More than the 256 that Bun runs by itself. */
const calls = 300

/** Retries if the answer says so: a gateway that has just started on a busy machine turns calls away for a moment. */
async function answerOf(url: string, request: string): Promise<number> {
  const connection = await connect(url)
  try {
    for (;;) {
      await connection.send(request)
      const answer = await connection.response()
      if (answer === 'closed') throw new Error('the gateway closed the connection')
      if (answer.status !== 503) return answer.status
      await Bun.sleep(100)
    }
  } finally {
    connection.leave()
  }
}

test('started without its launcher the gateway still has room for more upstream calls than Bun gives by itself', async () => {
  const open = Promise.withResolvers<void>()
  const all = Promise.withResolvers<void>()
  let running = 0
  const upstream = startUpstream(async (call, reply) => {
    if (++running === calls) all.resolve()
    await open.promise
    await reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole)
  })
  using site = createSite(upstream)
  const data = {
    dataFolder: site.dataFolder,
    databaseUrl: undefined,
    configPath: join(site.folder, 'tollgate.yaml'),
  }
  const unset = ['env', '-u', 'BUN_CONFIG_MAX_HTTP_REQUESTS']
  const gateway = await startCrashGateway(data, { command: [...unset, process.execPath, join(root, 'src/main.ts')] })
  try {
    const body = JSON.stringify({ model: 'acme/large', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] })
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
    const answers = Array.from({ length: calls }, () => answerOf(gateway.url, head + body))
    await all.promise
    open.resolve()
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]))
  } finally {
    open.resolve()
    await gateway.stop()
    upstream.stop()
  }
})
