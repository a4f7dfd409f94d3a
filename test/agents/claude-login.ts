// `/login` of Claude Code in a terminal, against whole gateways: denied, expired, approved, signed out in the console while it
// runs, signed in again, `/logout`. What stands on the screen is the test: each step waits for the words that a person acts on.

import { realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runHere } from '../parts/command-line.ts'
import { email, type Installation, type InstallationKind, startInstallation } from './installation.ts'
import { startLoopbackProxy } from './loopback-proxy.ts'
import { answer, Desk, prompt, type RealAgent, type Tried } from './real-agents.ts'

const columns = 120

/** A program in a terminal. */
class Terminal implements Disposable {
  readonly #socket: string

  constructor(
    desk: Desk,
    command: string,
    /** What stood there at each step. */
    readonly screens: string[],
  ) {
    this.#socket = join(desk.home, 'tmux.sock')
    const session = ['new-session', '-d', '-x', `${columns}`, '-y', '50', command]
    // What a program that has ended left on the screen stays.
    const options = [';', 'set-option', '-g', 'remain-on-exit', 'on']
    const start = Bun.spawnSync(['tmux', '-S', this.#socket, ...session, ...options], {
      cwd: desk.work,
      env: { ...desk.environment, TERM: 'xterm-256color', LANG: 'C.UTF-8' },
    })
    if (start.exitCode !== 0) throw new Error(`tmux failed: ${start.stderr}`)
  }

  #tmux(...args: string[]): string {
    return Bun.spawnSync(['tmux', '-S', this.#socket, ...args]).stdout.toString()
  }

  press(key: string): void {
    this.#tmux('send-keys', key)
  }

  /** In a list of two whose second row is chosen at first. */
  async choose(row: string): Promise<void> {
    await this.sees(new RegExp(row))
    this.press('Up')
    await this.sees(new RegExp(`❯ ${row}`))
    this.press('Enter')
  }

  /** Types a line, and sends it when it stands in the field: what is pasted together with Enter becomes a line break. */
  async say(text: string): Promise<void> {
    this.#tmux('send-keys', '-l', text)
    await this.sees(new RegExp(`❯ ${text.replaceAll(/[.?]/g, '\\$&')} ─`))
    this.press('Enter')
  }

  /** Waits for the words; lines are joined, because the terminal breaks them. */
  async sees(words: RegExp): Promise<RegExpExecArray> {
    const deadline = performance.now() + 120_000
    for (;;) {
      const screen = this.#tmux('capture-pane', '-p').trimEnd()
      const found = words.exec(screen.replaceAll(/\s+/g, ' '))
      if (found) {
        this.screens.push(screen.replaceAll(/\n{3,}/g, '\n\n'))
        return found
      }
      if (performance.now() > deadline) throw new Error(`the screen does not show ${words}:\n${screen}`)
      await Bun.sleep(100)
    }
  }

  [Symbol.dispose](): void {
    this.#tmux('kill-server')
  }
}

export async function tryLogin(agent: RealAgent, folder: string, kind: InstallationKind): Promise<Tried> {
  const installation = await startInstallation(kind)
  const proxy = await startLoopbackProxy()
  using desk = new Desk(agent, folder, installation, proxy.url)
  installation.upstream.handle(desk.model)
  answerFirstQuestions(desk)
  const startedMs = performance.now()
  const faults: string[] = []
  const screens: string[] = []
  try {
    const env = { HOME: desk.home, TOLLGATE_URL: installation.url }
    const connect = ['connect', 'claude', '--gateway-login', '--model', 'test/plain-1']
    const connected = await runHere(connect, { env, cwd: desk.home })
    if (connected.exit !== 0) throw new Error(`connect: ${connected.err}`)
    using terminal = new Terminal(desk, 'claude', screens)
    await playLogin(terminal, installation)
  } catch (thrown) {
    faults.push(thrown instanceof Error ? thrown.message : String(thrown))
  } finally {
    proxy.stop()
    await installation.stop()
  }
  const printed = screens.join(`\n${'─'.repeat(columns)}\n`)
  return { faults, printed, seconds: (performance.now() - startedMs) / 1000 }
}

/** Those of a first start: the colours, and whether the folder is trusted. */
function answerFirstQuestions({ home, work }: Desk): void {
  const trusted = { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true }
  const answers = { hasCompletedOnboarding: true, theme: 'dark', projects: { [realpathSync(work)]: trusted } }
  writeFileSync(join(home, '.claude.json'), JSON.stringify(answers))
}

const emptyField = /❯ ─/
const codeOnScreen = /\b([B-Z]{4}-[B-Z]{4})\b.*Waiting for sign-in/

async function playLogin(terminal: Terminal, installation: Installation): Promise<void> {
  const { approve, deny, age, devices, manage } = installation
  /** Until the code stands there; the first time the gateway has to be trusted. */
  const begin = async () => {
    await terminal.say('/login')
    await terminal.sees(/Press Enter to connect/)
    terminal.press('Enter')
    const [, code] = await terminal.sees(new RegExp(`Trust gateway|${codeOnScreen.source}`))
    if (code === undefined) await terminal.choose('Yes, trust this gateway')
    return code ?? (await terminal.sees(codeOnScreen))[1] ?? ''
  }
  const signIn = async () => {
    await approve(await begin())
    await terminal.sees(/Signed in to Cloud gateway as ada@example\.com/)
    await terminal.choose('Yes, continue')
    await terminal.sees(/Connected to Cloud gateway/)
    terminal.press('Enter')
    await terminal.sees(emptyField)
  }
  const ended = async (words: RegExp) => {
    await terminal.sees(words)
    terminal.press('Escape')
    await terminal.sees(emptyField)
  }

  await terminal.sees(emptyField)
  await deny(await begin())
  await ended(/Sign-in was denied in the browser\./)
  await begin()
  await age(600_000)
  await ended(/Sign-in timed out before the browser flow completed\. Try again\./)
  await signIn()
  await terminal.say(prompt)
  await terminal.sees(new RegExp(answer))
  const [device, ...others] = await devices()
  if (device?.email !== email || others.length > 0) throw new Error(`devices: ${JSON.stringify([device, ...others])}`)
  await manage('DELETE', `/api/sign-ins/${device.id}`)
  await terminal.say(prompt)
  await terminal.sees(/Please run \/login .*its sign-in ended/)
  await signIn()
  await terminal.say(prompt)
  await terminal.sees(new RegExp(`sign-in ended.*${answer}`))
  await terminal.say('/logout')
  await terminal.sees(/Successfully logged out|Resume this session/)
  const left = await devices()
  if (left.length > 0) throw new Error(`after /logout the device is still signed in: ${JSON.stringify(left)}`)
}
