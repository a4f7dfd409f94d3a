// Coding agents that a person signed in on a whole gateway: `tollgate login`, approved in a console session of a local account
// or of an identity provider, on SQLite or on two replicas behind a load balancer. The token is renewed in mid-session, and
// when an admin has signed the device out the agent shows what to run.

import { runHere } from '../parts/command-line.ts'
import { freePort } from '../parts/free-port.ts'
import { gatewayCommand } from '../parts/program.ts'
import { email, type InstallationKind, startInstallation } from './installation.ts'
import { startLoopbackProxy } from './loopback-proxy.ts'
import { answer, Desk, type RealAgent, type Tried } from './real-agents.ts'
import { expireToken, startProxy } from './signed-in-agents.ts'

/** Runs `tollgate login`, and approves the code that it shows. */
async function login(url: string, home: string, approve: (code: string) => Promise<unknown>): Promise<void> {
  const env = { HOME: home }
  const child = Bun.spawn([...gatewayCommand(), 'login', url], { cwd: home, env, stdio: ['ignore', 'ignore', 'pipe'] })
  const decoder = new TextDecoder()
  let text = ''
  let isApproved = false
  for await (const bytes of child.stderr) {
    text += decoder.decode(bytes, { stream: true })
    const code = /\n {2}([A-Z]{4}-[A-Z]{4})\n/.exec(text)?.[1]
    if (code === undefined || isApproved) continue
    isApproved = true
    await approve(code)
  }
  if ((await child.exited) !== 0) throw new Error(`tollgate login failed:\n${text}`)
}

export async function tryApproved(agent: RealAgent, folder: string, kind: InstallationKind): Promise<Tried> {
  const installation = await startInstallation(kind)
  const { upstream, manage } = installation
  const proxy = await startLoopbackProxy()
  using desk = new Desk(agent, folder, installation, proxy.url)
  const tollgate = (...args: string[]) => runHere(args, { env: { HOME: desk.home }, cwd: desk.home })
  let localProxy: Bun.Subprocess | undefined
  try {
    await login(installation.url, desk.home, installation.approve)

    const { model } = desk
    upstream.handle((call, reply) => {
      if (upstream.calls.length === 1) expireToken(desk.home)
      return model(call, reply)
    })
    const port = String(freePort())
    const connected = await tollgate('connect', agent.id, '--model', 'test/plain-1', '--port', port)
    if (connected.err.includes('tollgate proxy')) localProxy = await startProxy(port, { HOME: desk.home })
    const startedMs = performance.now()
    const run = await desk.run(connected.out)
    const seconds = (performance.now() - startedMs) / 1000
    const isDone = agent.read ? run.printed.includes(answer) : desk.isNoteChanged

    const [signIn] = await installation.devices()
    const requests = (await manage('GET', '/api/requests?limit=200')).data as { key_id: string; status: number }[]
    await manage('DELETE', `/api/sign-ins/${signIn?.id}`)
    const signedOut = await desk.run(connected.out)
    const wrong = [
      connected.exit !== 0 && `connect: ${connected.err}`,
      run.exitCode !== 0 && `exit code ${run.exitCode}`,
      !isDone && 'the task is not done',
      signIn?.email !== email && 'the device is not in the list',
      requests.length === 0 && 'no request was recorded',
      !requests.every(({ key_id: id, status }) => id === signIn?.key_id && status === 200) &&
        'a request failed or is not the person’s',
      !signedOut.printed.replace(/\s+/g, ' ').includes('tollgate login') &&
        `it did not show what to run when signed out: ${signedOut.printed}`,
    ]
    return { faults: wrong.filter((fault) => typeof fault === 'string'), printed: run.printed, seconds }
  } finally {
    localProxy?.kill('SIGKILL')
    proxy.stop()
    await installation.stop()
  }
}
