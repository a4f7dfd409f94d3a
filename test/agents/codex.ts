// `npm run codex`: Codex CLI itself, headless, through the gateway on a provider of each dialect and on the sandbox. It is
// set up by `tollgate connect codex`, and with --websockets told to use those. The fake model reads a file, edits it with apply_patch, runs a command and answers;
// the session is resumed; every request meets a 503 first; a spend limit ends an answer. Not part of `npm test`, because
// the program has 436 MB.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DialectName, openStage, type Stage } from '../conformance/cells.ts'
import { chatBytes } from '../conformance/replies/chat-bytes.ts'
import type { ProviderBytes } from '../conformance/replies/reply-fixture.ts'
import { messageItem, responsesBytes } from '../conformance/replies/responses-bytes.ts'
import { answerWith } from '../conformance/reply-cells.ts'
import { runHere } from '../parts/command-line.ts'
import { failFirst } from '../parts/failing-provider.ts'
import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import { scriptedModel } from './scripted-model.ts'

const usage = `Usage: npm run codex [-- --program PATH --websockets]

Runs Codex CLI through the gateway, against fake providers. Install it with
  npm install --prefix /some/folder @openai/codex
  npm run codex -- --program /some/folder/node_modules/.bin/codex
  --program      Codex; the one on the PATH unless given
  --websockets   sets supports_websockets, so that Codex talks over a WebSocket`

const models: Readonly<Record<DialectName, string>> = {
  chat: 'test/plain-1',
  messages: 'test/claude-sonnet-4-5',
  gemini: 'test/gemini-3.8-flash',
  responses: 'test/responses-gpt-5.6',
}

const patch = '*** Begin Patch\n*** Update File: note.txt\n@@\n-the answer is 42\n+the answer is 43\n*** End Patch\n'
const answer = 'It is 43 now.'
const model = scriptedModel(
  [
    { tool: 'exec_command', input: '{"cmd":"cat note.txt"}' },
    { tool: 'apply_patch', input: patch, isCustom: true },
    { tool: 'exec_command', input: '{"cmd":"cat note.txt"}' },
  ],
  answer,
)

interface Run {
  readonly exitCode: number
  readonly printed: string
  /** The gateway's records of its generations. */
  readonly records: readonly Record<string, unknown>[]
  /** Only over a WebSocket. */
  readonly warmUps: number
  readonly upstreamCalls: number
  readonly seconds: number
}

class Desk implements Disposable {
  readonly #home = mkdtempSync(join(tmpdir(), 'tollgate-codex-'))
  readonly work = join(this.#home, 'work')

  constructor(
    readonly program: string,
    readonly stage: Stage,
    /** Codex uses WebSockets. */
    readonly isSocket: boolean,
  ) {
    mkdirSync(this.work)
    this.writeNote()
  }

  writeNote(): void {
    writeFileSync(join(this.work, 'note.txt'), 'the answer is 42\n')
  }

  get note(): string {
    return readFileSync(join(this.work, 'note.txt'), 'utf8').trim()
  }

  async connect(id: string): Promise<void> {
    const { gateway } = this.stage
    const token = readFileSync(join(gateway.dataFolder, 'admin-token'), 'utf8').trim()
    const env = {
      TOLLGATE_URL: gateway.url,
      TOLLGATE_ADMIN_TOKEN: token,
      TOLLGATE_KEY: gateway.key,
      CODEX_HOME: join(this.#home, 'codex'),
      HOME: this.#home,
    }
    const { exit, err } = await runHere(['connect', 'codex', '--model', id], { env, cwd: this.#home })
    if (exit !== 0) throw new Error(`connect codex: ${err}`)
  }

  async codex(...args: readonly string[]): Promise<Run> {
    const { gateway, upstream } = this.stage
    const isGeneration = ({ message, model: asked }: Record<string, unknown>) => message === 'request' && asked
    const before = gateway.logged().filter(isGeneration).length
    const calls = upstream.calls.length
    const startedMs = performance.now()
    const flags = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox']
    if (this.isSocket) flags.push('-c', 'model_providers.tollgate.supports_websockets=true')
    const child = Bun.spawn(
      [this.program, '--profile', 'tollgate', 'exec', ...args.slice(0, -1), ...flags, ...args.slice(-1)],
      {
        cwd: this.work,
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
        timeout: 600_000,
        killSignal: 'SIGKILL',
        env: { PATH: process.env.PATH ?? '', HOME: this.#home, CODEX_HOME: join(this.#home, 'codex') },
      },
    )
    const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    const records = gateway.logged().filter(isGeneration).slice(before)
    const isWarmUp = ({ notes }: Record<string, unknown>) => String(notes).startsWith('warmed up')
    return {
      exitCode,
      printed: output + errors,
      records: records.filter((record) => !isWarmUp(record)),
      warmUps: records.filter(isWarmUp).length,
      upstreamCalls: upstream.calls.length - calls,
      seconds: (performance.now() - startedMs) / 1000,
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#home, { recursive: true, force: true })
  }
}

/** 10 tokens in and 5 out, at $1 and $2 per million. */
const costOfCall = '0.00002'

function check(what: string, run: Run, wrong: readonly (string | false)[]): boolean {
  const faults = wrong.filter((fault) => fault !== false)
  const figures = `${run.records.length} requests, ${run.warmUps} warm-ups, ${run.upstreamCalls} upstream calls, ${run.seconds.toFixed(1)} s`
  console.log(
    `${faults.length === 0 ? 'ok  ' : 'FAIL'} ${what}: ${figures}${faults.map((fault) => `\n     ${fault}`).join('')}`,
  )
  if (faults.length > 0) console.log(run.printed.replaceAll(/^/gm, '     | '))
  return faults.length === 0
}

function expectCharged({ records }: Run, count: number): string | false {
  const charged = records.map(({ status, cost }) => `${status} ${cost}`)
  const wanted = Array.from({ length: count }, () => `200 ${costOfCall}`)
  return charged.join() !== wanted.join() && `charged ${charged.join(', ')}`
}

async function tryDialect(desk: Desk, dialect: DialectName): Promise<boolean> {
  desk.writeNote()
  desk.stage.calm()
  desk.stage.upstream.handle(failFirst(1, 'a 503', model))
  await desk.connect(models[dialect])
  const task = await desk.codex('Change the answer in note.txt to 43.')
  const isDone = check(`${dialect}: a file read, patched and read again, each request behind a 503`, task, [
    task.exitCode !== 0 && `exit code ${task.exitCode}`,
    desk.note !== 'the answer is 43' && `note.txt says "${desk.note}"`,
    !task.printed.includes(answer) && 'the answer is missing',
    expectCharged(task, 4),
    task.upstreamCalls !== 8 && 'not every request was tried twice',
    desk.isSocket !== task.warmUps > 0 && `${task.warmUps} warm-ups`,
  ])
  const resumed = await desk.codex('resume', '--last', 'What is it now?')
  const sent = JSON.stringify(desk.stage.upstream.calls.at(-1)?.json() ?? {})
  const isResumed = check(`${dialect}: the session resumed`, resumed, [
    resumed.exitCode !== 0 && `exit code ${resumed.exitCode}`,
    !sent.includes('Change the answer') && 'the conversation before is missing',
    expectCharged(resumed, 1),
  ])
  return isDone && isResumed
}

async function trySandbox(desk: Desk): Promise<boolean> {
  await desk.connect('sandbox/echo')
  const run = await desk.codex('Say it back.')
  return check('sandbox/echo', run, [
    run.exitCode !== 0 && `exit code ${run.exitCode}`,
    run.records.length !== 1 && 'not one request',
    !run.printed.includes('Say it back.') && 'no echo',
  ])
}

/** The model stops at the cap, which the limit has lowered. */
const cut: Readonly<Partial<Record<DialectName, ProviderBytes>>> = {
  chat: chatBytes({ deltas: [{ content: 'So' }], message: { content: 'So' }, finish: 'length' }),
  responses: responsesBytes({
    items: [messageItem(0, 'So')],
    status: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
  }),
}

async function trySpendLimit(desk: Desk, dialect: 'chat' | 'responses'): Promise<boolean> {
  const { gateway, upstream } = desk.stage
  const token = readFileSync(join(gateway.dataFolder, 'admin-token'), 'utf8').trim()
  const manage = (method: string, path: string, body?: object) =>
    fetch(gateway.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    }).then((response) => response.json() as Promise<{ data: { id: string }[] }>)
  const [key] = (await manage('GET', '/api/keys')).data
  upstream.handle(answerWith((each) => cut[each]))
  await desk.connect(models[dialect])
  const limit = (amount?: string) =>
    manage('PUT', `/api/keys/${key?.id}/limits`, amount === undefined ? {} : { spend_per_day: amount })
  // The lowest limit that pays for Codex's prompt pays for less than the 4,096 tokens of the model's default cap. A web
  // search would be held for with the model's whole context.
  let ended: Run
  let cents = 2
  do {
    await limit((cents / 100).toFixed(4))
    cents += 0.25
    ended = await desk.codex('-c', 'web_search="disabled"', 'Go on.')
  } while (ended.records.some(({ status }) => status === 429) && cents < 8)
  const isEnded = check(`${dialect}: a spend limit ends the answer, which is paid once`, ended, [
    ended.exitCode === 0 && 'Codex reports success',
    !/quota/i.test(ended.printed) && 'the reason is missing',
    expectCharged(ended, 1),
  ])
  await limit('0.001')
  const refused = await desk.codex('Go on.')
  await limit()
  const isRefused = check(`${dialect}: a spend limit that is used up ends Codex at once`, refused, [
    refused.exitCode === 0 && 'Codex reports success',
    !/usage limit/i.test(refused.printed) && 'the reason is missing',
    refused.records.map(({ status }) => status).join() !== '429' && 'not one 429',
  ])
  return isEnded && isRefused
}

const { program = Bun.which('codex') ?? undefined, websockets = false } = scriptOptions(usage, {
  program: { type: 'string' },
  websockets: { type: 'boolean' },
})
if (program === undefined) {
  console.log(`skipped: Codex is not installed\n\n${usage}`)
  process.exit(0)
}
if (!existsSync(program)) refuseOptions(`There is no ${program}.`, usage)

const stage = await openStage(model)
const desk = new Desk(program, stage, websockets)
const results: boolean[] = []
try {
  for (const dialect of ['chat', 'messages', 'gemini', 'responses'] as const)
    results.push(await tryDialect(desk, dialect))
  results.push(await trySandbox(desk))
  for (const dialect of ['chat', 'responses'] as const) results.push(await trySpendLimit(desk, dialect))
} finally {
  desk[Symbol.dispose]()
  await stage.stop()
}
process.exit(results.every(Boolean) ? 0 : 1)
