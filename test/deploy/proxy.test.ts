import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { post } from '../parts/ask.ts'
import type { CrashGateway } from '../parts/crash-gateway.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { freePort } from '../parts/free-port.ts'
import { startGateway } from '../parts/gateway.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { connect } from '../parts/raw-client.ts'
import { SocketClient } from '../parts/web-socket.ts'
import { findNginx } from '../replicas/fleet/nginx.ts'
import { until } from '../replicas/fleet/proof.ts'
import { ask, createSite, root, type Site } from './site.ts'

// Two gateways on one PostgreSQL behind the nginx of the compose file, with only its addresses and paths changed.

const nginx = findNginx()
const installed = nginx !== undefined && findPostgresPrograms() !== undefined
/** Debian puts it where only root looks for programs. */
const haproxy = Bun.which('haproxy', { PATH: `${process.env.PATH}:/usr/sbin` }) ?? undefined

/** Once the proxy is ready: streams and WebSockets pass, and metrics do not. */
async function expectForwarded(
  proxy: { readonly exitCode: number | null; readonly stderr: ReadableStream },
  url: string,
  key: string,
): Promise<void> {
  await until(async () => {
    if (proxy.exitCode !== null) throw new Error(await new Response(proxy.stderr).text())
    return await fetch(`${url}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    )
  })
  const streamed = await ask(url, key, 'sandbox/echo')
  expect([streamed.status, (await fetch(`${url}/metrics`)).status]).toEqual([200, 404])
  await expectTurns(url, key)
}

/** Two turns on one connection, of which the second continues the first. */
async function expectTurns(url: string, key: string): Promise<void> {
  const client = await SocketClient.open({ url, key })
  let previous: unknown
  for (const text of ['first', 'second']) {
    const input = [{ type: 'message', role: 'user', content: text }]
    const turn = {
      model: 'sandbox/echo',
      store: false,
      input,
      ...(previous !== undefined && { previous_response_id: previous }),
    }
    const last = (await client.turn(turn)).at(-1) as { type?: string; response?: { id: string } }
    expect(last.type).toBe('response.completed')
    expect(JSON.stringify(last.response)).toContain(text)
    previous = last.response?.id
  }
  await client.close()
}

describe.skipIf(!installed)('behind the proxy of the compose file', () => {
  let site: Site
  let gateways: readonly CrashGateway[]
  let proxy: Bun.Subprocess
  let url: string

  // A hook of a skipped group would be counted as a skipped test without a name.
  if (installed) {
    beforeAll(async () => {
      site = createSite()
      const databaseUrl = await (await sharedPostgres()).createDatabase()
      gateways = [await site.start(databaseUrl), await site.start(databaseUrl)]
      url = await startProxy()
    })
    afterAll(async () => {
      proxy.kill('SIGKILL')
      await Promise.all(gateways.map((gateway) => gateway.kill()))
      site[Symbol.dispose]()
    })
  }

  async function startProxy(): Promise<string> {
    const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    const { port } = listener
    listener.stop(true)
    const folder = join(site.folder, 'nginx')
    mkdirSync(folder)
    const [first, second] = gateways.map((gateway) => new URL(gateway.url).host)
    const text = readFileSync(join(root, 'deploy/compose/nginx.conf'), 'utf8')
      .replaceAll('gateway-1:8080', first ?? '')
      .replaceAll('gateway-2:8080', second ?? '')
      .replace('listen 8080', `listen 127.0.0.1:${port}`)
      .replaceAll('/tmp/', `${folder}/`)
    const file = join(folder, 'nginx.conf')
    // One process instead of a family, so that killing it is enough.
    writeFileSync(file, `daemon off;\nmaster_process off;\n${text}`)
    const checked = Bun.spawnSync([nginx ?? '', '-t', '-p', folder, '-c', file])
    expect([checked.exitCode, checked.stderr.toString()]).toEqual([0, expect.stringContaining('test is successful')])
    proxy = Bun.spawn([nginx ?? '', '-p', folder, '-c', file], { stdout: 'ignore', stderr: 'ignore' })
    const address = `http://127.0.0.1:${port}`
    for (;;) {
      try {
        await fetch(`${address}/healthz`)
        return address
      } catch {
        await Bun.sleep(20)
      }
    }
  }

  test('both gateways take the same key, and each gets its share', async () => {
    const key = gateways[0]?.key ?? ''
    for (let call = 0; call < 10; call++) expect((await ask(url, key, 'sandbox/echo')).status).toBe(200)
    for (const gateway of gateways) {
      while (!gateway.lastLines().includes('"message":"request"')) await Bun.sleep(5)
    }
  })

  test('a browser that signed in stays signed in, whichever page or call comes next', async () => {
    const token = readFileSync(join(site.dataFolder, 'admin-token'), 'utf8').trim()
    const opened = await fetch(`${url}/console/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: url },
      body: JSON.stringify({ token }),
    })
    const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? ''
    const statuses = new Set<number>()
    for (let call = 0; call < 10; call++) {
      // A separate connection, as a browser has several.
      const headers = { cookie, connection: 'close' }
      statuses.add((await fetch(`${url}/api/workspaces`, { headers })).status)
      const page = await (await fetch(`${url}/console`, { headers })).text()
      expect(page).not.toContain('Management token')
    }
    expect([opened.status, ...statuses]).toEqual([200, 200])
  })

  test('metrics are not for callers', async () => {
    expect((await fetch(`${url}/metrics`)).status).toBe(404)
  })

  test('an event reaches the client while the answer is still being made', async () => {
    const response = await post({ url, key: gateways[0]?.key ?? '' }, '/v1/chat/completions', {
      model: 'sandbox/slow',
      stream: true,
      messages: [{ role: 'user', content: 'one two three' }],
    })
    expect(response.status).toBe(200)
    let reads = 0
    let text = ''
    for await (const bytes of response.body ?? []) {
      reads++
      text += Buffer.from(bytes).toString()
    }
    expect(text).toEndWith('data: [DONE]\n\n')
    // A proxy that buffers would hand out a few hundred bytes at once.
    expect(reads).toBeGreaterThan(2)
  })

  test('a WebSocket passes', () => expectTurns(url, gateways[0]?.key ?? ''))

  test('with one gateway stopped, every call is answered by the other', async () => {
    const [first, second] = gateways
    expect(await first?.stop()).toBe(0)
    for (let call = 0; call < 20; call++) expect((await ask(url, second?.key ?? '', 'sandbox/echo')).status).toBe(200)
  })
})

describe.skipIf(nginx === undefined)('behind the nginx of the deployment page, in front of one gateway', () => {
  test('pages, streams and client addresses pass, metrics do not', async () => {
    await using cleanup = new AsyncDisposableStack()
    const gateway = await startGateway({ env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' } })
    cleanup.defer(() => gateway.stop())
    const folder = cleanup.use(createThrowAwayFolder()).path
    const port = freePort()
    const page = readFileSync(join(root, 'docs/operate/deploy.md'), 'utf8')
    const server = /```nginx\n(.*?)```/s.exec(page)?.[1] ?? ''
    // Without a certificate, and with the addresses of the test.
    const block = server
      .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
      .replace(/^ *ssl_.*\n/gm, '')
      .replace('127.0.0.1:8080', new URL(gateway.url).host)
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    )
    const file = join(folder, 'nginx.conf')
    const head = `daemon off;\nmaster_process off;\npid ${folder}/pid;\nerror_log stderr;\nevents {}\n`
    writeFileSync(file, `${head}http {\naccess_log off;\n${paths.join('\n')}\n${block}}\n`)
    const proxy = Bun.spawn([nginx ?? '', '-p', folder, '-c', file], { stdout: 'ignore', stderr: 'pipe' })
    cleanup.defer(() => proxy.kill('SIGKILL'))
    const url = `http://127.0.0.1:${port}`
    await expectForwarded(proxy, url, gateway.key)
    const connection = await connect(url)
    await connection.send(`POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: ${34 * 1024 * 1024}\r\n\r\n`)
    const tooLarge = await connection.response()
    connection.leave()
    if (tooLarge === 'closed') throw new Error('no answer')
    expect([tooLarge.status, tooLarge.headers.get('content-type')]).toEqual([413, 'application/json'])
    expect(JSON.parse(tooLarge.body)).toMatchObject({
      type: 'error',
      error: { code: 'PAYLOAD_TOO_LARGE', message: expect.stringContaining('Send less') },
    })
    const token = readFileSync(join(gateway.dataFolder, 'admin-token'), 'utf8').trim()
    const management = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const manage = async (path: string, body?: object) => {
      const init = body && { method: 'POST', body: JSON.stringify(body) }
      const response = await fetch(url + path, { headers: management, ...init })
      return (await response.json()) as { readonly data: readonly { readonly id: string }[]; readonly secret: string }
    }
    const [workspace] = (await manage('/api/workspaces')).data
    const [project] = (await manage(`/api/workspaces/${workspace?.id}/projects`)).data
    const key = { name: 'office', sources: ['192.0.2.0/24'] }
    const { secret } = await manage(`/api/projects/${project?.id}/keys`, key)
    // On this machine the client's own address is a trusted one, so that what it forwards counts.
    const from = async (address: string) => {
      const headers = { authorization: `Bearer ${secret}`, 'x-forwarded-for': address }
      return (await fetch(`${url}/v1/models`, { headers })).status
    }
    expect([await from('192.0.2.7'), await from('198.51.100.7')]).toEqual([200, 403])
  })
})

describe.skipIf(haproxy === undefined)('behind HAProxy', () => {
  test('streams and WebSockets pass', async () => {
    await using cleanup = new AsyncDisposableStack()
    const gateway = await startGateway()
    cleanup.defer(() => gateway.stop())
    const port = freePort()
    const file = join(cleanup.use(createThrowAwayFolder()).path, 'haproxy.cfg')
    const page = readFileSync(join(root, 'docs/operate/deploy.md'), 'utf8')
    const config = (/```haproxy\n(.*?)```/s.exec(page)?.[1] ?? '')
      .replace(/bind :443 .*/, `bind 127.0.0.1:${port}`)
      .replace('127.0.0.1:8080', new URL(gateway.url).host)
    writeFileSync(file, config)
    const proxy = Bun.spawn([haproxy ?? '', '-db', '-f', file], { stdout: 'ignore', stderr: 'pipe' })
    cleanup.defer(() => proxy.kill('SIGKILL'))
    const url = `http://127.0.0.1:${port}`
    await expectForwarded(proxy, url, gateway.key)
  })
})
