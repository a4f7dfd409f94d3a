// Coding agents with a person's sign-in instead of a key. The token expires in mid-session and is renewed; after `logout` the
// agent shows what to run. In front of the gateway stands a server for sign-ins, because a token's fifteen minutes are too
// long for a test.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runHere } from '../parts/command-line.ts'
import { freePort } from '../parts/free-port.ts'
import { manage } from '../parts/manage.ts'
import { gatewayCommand } from '../parts/program.ts'
import { startSignInServer } from '../parts/sign-in-server.ts'
import { startUpstream } from '../parts/upstream.ts'
import { startLoopbackProxy } from './loopback-proxy.ts'
import { answer, Desk, type RealAgent, startProgram, type Tried } from './real-agents.ts'

/** Keep a token for minutes, and do not fetch another one after a 401. */
const keepsToken = ['opencode']
/** Run the command for tokens again after a 401. */
const hasHelper = ['claude', 'codex']

export async function trySignedIn(agent: RealAgent, folder: string): Promise<Tried> {
  const upstream = startUpstream((_, reply) => reply.json(500, {}))
  const program = await startProgram(upstream.url)
  const proxy = await startLoopbackProxy()
  await using server = startSignInServer(program)
  using desk = new Desk(agent, folder, { url: server.url, dataFolder: program.dataFolder }, proxy.url)
  const env = { HOME: desk.home }
  const tollgate = (...args: string[]) => runHere(args, { env, cwd: desk.home })
  const keyIds = async (): Promise<string[]> =>
    (await manage(program, 'GET', '/api/keys')).data.map(({ id }: { id: string }) => id)
  let localProxy: Bun.Subprocess | undefined
  try {
    const { model } = desk
    upstream.handle((call, reply) => {
      if (upstream.calls.length === 1) expireToken(desk.home)
      if (upstream.calls.length === 1 && hasHelper.includes(agent.id)) server.accepted.clear()
      return model(call, reply)
    })
    const [before, keysBefore] = [desk.settings, await keyIds()]
    await tollgate('login', server.url)
    const port = String(freePort())
    const connected = await tollgate('connect', agent.id, '--model', 'test/plain-1', '--port', port)
    const written = desk.settings ?? ''
    if (connected.err.includes('tollgate proxy')) localProxy = await startProxy(port, env)
    const startedMs = performance.now()
    const run = await desk.run(connected.out)
    const seconds = (performance.now() - startedMs) / 1000
    const isDone = agent.read ? run.printed.includes(answer) : desk.isNoteChanged
    const renewals = server.forms.filter(([, form]) => form.grant_type === 'refresh_token').length
    const expected = agent.read && !keepsToken.includes(agent.id) ? 1 : 0
    await tollgate('logout')
    const signedOut = await desk.run(connected.out)
    const undone = await tollgate('connect', agent.id, '--undo')
    const wrong = [
      connected.exit !== 0 && `connect: ${connected.err}`,
      /sk-tg-/.test(written) && 'connect wrote a key',
      run.exitCode !== 0 && `exit code ${run.exitCode}`,
      !isDone && 'the task is not done',
      renewals !== expected && `${renewals} renewals, not ${expected}`,
      server.isReused && 'a refresh token was used twice',
      !signedOut.printed.replace(/\s+/g, ' ').includes('tollgate login') &&
        `it did not show what to run when signed out: ${signedOut.printed}`,
      (await keyIds()).join() !== keysBefore.join() && 'a key was created',
      agent.settings && undone.exit !== 0 && `undo: ${undone.err}`,
      desk.settings !== before && `after undo: ${desk.settings}`,
    ]
    return { faults: wrong.filter((fault) => typeof fault === 'string'), printed: run.printed, seconds }
  } finally {
    localProxy?.kill('SIGKILL')
    proxy.stop()
    await program.stop()
    upstream.stop()
  }
}

/** The stored token looks as if it expires in a second, so that whoever needs one next refreshes it. */
export function expireToken(home: string): void {
  const entries = join(home, '.config/tollgate/sign-ins')
  const file = join(entries, readdirSync(entries).find((name) => name.endsWith('.json')) ?? '')
  const entry = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...entry, access_expires_at: new Date(Date.now() + 1000).toISOString() }))
}

export async function startProxy(port: string, env: Readonly<Record<string, string>>): Promise<Bun.Subprocess> {
  const child = Bun.spawn([...gatewayCommand(), 'proxy', '--port', port], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  // It prints one line, when it listens.
  const { done } = await child.stdout.getReader().read()
  if (done) throw new Error('the local proxy did not start')
  return child
}
