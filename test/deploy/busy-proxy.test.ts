// The proxy of the compose file while one gateway is gone and the others have too much to do: callers hear what the
// gateways say, whichever of them was asked last.

import { describe, expect, test } from 'bun:test'
import { connect } from '../parts/raw-client.ts'
import { bothSurfaces } from '../parts/surfaces.ts'
import { findNginx, startNginx } from '../replicas/fleet/nginx.ts'

const said = '{"error":{"code":"OVERLOADED","message":"Tollgate is too busy to take this request. Retry in a moment."}}'

function startBusy() {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) =>
      url.endsWith('/healthz')
        ? new Response('ok')
        : new Response(said, {
            status: 503,
            headers: { 'retry-after': '1', 'content-type': 'application/json' },
          }),
  })
}

const generating = ['/v1/chat/completions', '/v1/messages', '/v1/responses', '/v1beta/models/a/b:generateContent']

/** No process listens there any more. */
function urlOfGone(): string {
  const gone = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { port } = gone
  gone.stop(true)
  return `http://127.0.0.1:${port}`
}

describe.skipIf(findNginx() === undefined)('behind nginx, one gateway gone and two busy', () => {
  test('every call gets 503 with Retry-After, in its own dialect', async () => {
    const [first, second] = [startBusy(), startBusy()]
    const members = [urlOfGone(), `http://127.0.0.1:${first.port}`, `http://127.0.0.1:${second.port}`]
    await using nginx = await startNginx({ key: '', members: members.map((url) => ({ url })) })
    const statuses = new Set<number>()
    for (const { path, name } of bothSurfaces) {
      const calls = Array.from({ length: 24 }, () => fetch(nginx.url + path, { method: 'POST', body: '{}' }))
      for (const response of await Promise.all(calls)) {
        statuses.add(response.status)
        expect(response.headers.get('retry-after')).toMatch(/^[12]$/)
        const answer = (await response.json()) as { type?: string; error: Record<string, unknown> }
        expect(answer.error).toMatchObject({ code: 'OVERLOADED', message: expect.stringContaining('too busy') })
        // The proxy's own errors are in the surface's own form.
        if (answer.error.type !== undefined) expect(answer.type).toBe(name === 'messages' ? 'error' : undefined)
      }
    }
    expect([...statuses]).toEqual([503])
    await Promise.all([first.stop(true), second.stop(true)])
  })

  test('a call that no gateway answers gets JSON of its API, which says whether it was sent', async () => {
    const breaking = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket, bytes) {
          if (bytes.toString('latin1').startsWith('GET')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
          else socket.terminate()
        },
      },
    })
    const broken = `http://127.0.0.1:${breaking.port}`
    await using nginx = await startNginx({ key: '', members: [{ url: broken }] })
    const ask = async (path: string, headers = {}) => {
      const response = await fetch(nginx.url + path, { method: 'POST', body: '{}', headers })
      const { type, error } = (await response.json()) as { type?: string; error: Record<string, unknown> }
      return { status: response.status, retry: response.headers.get('x-should-retry'), type, error }
    }
    const paths = [...generating, '/api/x']
    const check = async (message: string, retry: string) => {
      for (const path of paths) {
        const isGoogles = path.startsWith('/v1beta')
        const words = isGoogles
          ? { code: 503, status: 'UNAVAILABLE' }
          : { type: 'overloaded_error', code: 'OVERLOADED' }
        expect([path, await ask(path)]).toEqual([
          path,
          {
            ...{ status: 503, retry, type: path === '/v1/messages' ? 'error' : undefined },
            error: expect.objectContaining({ ...words, message: expect.stringContaining(message) }),
          },
        ])
      }
    }
    await check('not known yet whether this request was done and charged', 'false')
    expect((await ask('/v1/messages', { 'idempotency-key': 'k' })).retry).toBe('true')
    breaking.stop(true)
    await check('Nothing was charged', 'true')
  })

  test('a request that is too large gets JSON of its API, from nginx as from a gateway', async () => {
    const refusing = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: ({ url }) =>
        url.endsWith('/healthz')
          ? new Response('ok')
          : new Response('{}', { status: 413, headers: { 'x-request-id': 'req_1' } }),
    })
    await using nginx = await startNginx({ key: '', members: [{ url: `http://127.0.0.1:${refusing.port}` }] })
    const mebibyte = 1024 * 1024
    const piece = `${mebibyte.toString(16)}\r\n${'x'.repeat(mebibyte)}\r\n`
    const bodies = {
      announced: [`content-length: ${34 * mebibyte}\r\n\r\n`],
      chunked: ['transfer-encoding: chunked\r\n\r\n', ...Array.from({ length: 34 }, () => piece)],
      'refused by a gateway': ['content-length: 2\r\n\r\n{}'],
    }
    for (const path of generating) {
      for (const [how, parts] of Object.entries(bodies)) {
        const connection = await connect(nginx.url)
        void connection.send(`POST ${path} HTTP/1.1\r\nhost: x\r\n`)
        for (const part of parts) void connection.send(part)
        const answer = await connection.response()
        connection.leave()
        if (answer === 'closed') throw new Error(`${path}, ${how}: no answer`)
        const isOurs = how === 'refused by a gateway'
        const said = ['content-type', 'x-request-id'].map((name) => answer.headers.get(name))
        expect([path, how, answer.status, ...said]).toEqual([
          ...[path, how, 413],
          ...['application/json', isOurs ? 'req_1' : null],
        ])
        const { type, error } = JSON.parse(answer.body) as { type?: string; error: Record<string, unknown> }
        expect(type).toBe(path === '/v1/messages' ? 'error' : undefined)
        expect(error).toEqual({
          ...(path.startsWith('/v1beta') && { code: 413, status: 'INVALID_ARGUMENT' }),
          ...(path === '/v1/messages' && { type: 'request_too_large', code: 'PAYLOAD_TOO_LARGE' }),
          ...(/^\/v1\/(chat|responses)/.test(path) && {
            ...{ type: 'invalid_request_error', param: null, code: 'PAYLOAD_TOO_LARGE' },
          }),
          message: isOurs
            ? 'This request is larger than this gateway or the provider takes. Send less.'
            : 'The body is larger than this gateway takes. Send less.',
        })
      }
    }
    await refusing.stop(true)
  })

  test('a change is sent once, and a generation that broke off is not sent a third time', async () => {
    const seen: string[] = []
    const busy = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch({ url, method }) {
        if (method === 'POST') seen.push(`busy ${new URL(url).pathname}`)
        return url.endsWith('/healthz') ? new Response('ok') : new Response(said, { status: 503 })
      },
    })
    const breaking = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket, bytes) {
          const path = /^POST (\S+)/.exec(bytes.toString('latin1'))?.[1]
          if (path === undefined) return void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
          seen.push(`breaking ${path}`)
          socket.terminate()
        },
      },
    })
    const members = [`http://127.0.0.1:${busy.port}`, `http://127.0.0.1:${breaking.port}`]
    await using nginx = await startNginx({ key: '', members: members.map((url) => ({ url })) })
    const post = (path: string) => fetch(nginx.url + path, { method: 'POST', body: '{}' })
    for (let n = 0; n < 8; n++) {
      seen.length = 0
      expect([502, 503]).toContain((await post('/api/workspaces/ws_1/topups')).status)
      expect(seen).toHaveLength(1)
      seen.length = 0
      expect([502, 503]).toContain((await post('/v1/chat/completions')).status)
      expect(seen.filter((each) => each.startsWith('breaking'))).toHaveLength(1)
      expect(seen.at(-1)).toStartWith('breaking')
    }
    await busy.stop(true)
    breaking.stop(true)
  })
})
