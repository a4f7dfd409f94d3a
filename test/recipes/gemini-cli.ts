// Gemini CLI, headless, set up by `tollgate connect gemini`: the program itself, and a provider of any dialect that plays a
// model which thinks, reads two files at once, edits one, runs a command and answers.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DialectName, dialectOfPath, type Stage } from '../conformance/cells.ts'
import { callOpening, chatBytes, wholeCall } from '../conformance/replies/chat-bytes.ts'
import { callPart, geminiBytes, thoughtPart } from '../conformance/replies/gemini-bytes.ts'
import { callBlock, messagesBytes, textBlock, thinkingBlock } from '../conformance/replies/messages-bytes.ts'
import type { ProviderBytes } from '../conformance/replies/reply-fixture.ts'
import { callItem, messageItem, reasoningItem, responsesBytes } from '../conformance/replies/responses-bytes.ts'
import { answerWith } from '../conformance/reply-cells.ts'
import { runHere } from '../parts/command-line.ts'
import type { UpstreamCall, UpstreamHandler } from '../parts/upstream.ts'
import { fetchOnce } from './fetched.ts'

export const geminiCli = {
  name: 'Gemini CLI',
  version: '0.61.0',
  by: 'itself',
  recipe: 'agents.md#gemini-cli',
  examples: ['stream', 'tools', 'parallel', 'thinking'],
} as const

/** The program's path, or why there is none. */
export async function findGeminiCli(): Promise<{ readonly program: string } | { readonly reason: string }> {
  // Terminals and key rings are optional packages with native code, which headless runs do without.
  const settings = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--omit=optional', '--fetch-retries=1']
  const fetched = await fetchOnce(`gemini-cli-${geminiCli.version}`, (folder) => [
    {
      what: 'npm install',
      command: ['npm', 'install', '--prefix', folder, ...settings, `@google/gemini-cli@${geminiCli.version}`],
    },
  ])
  if ('reason' in fetched) return fetched
  return { program: join(fetched.folder, 'node_modules/@google/gemini-cli/bundle/gemini.js') }
}

interface ToolCall {
  readonly tool: string
  readonly input: object
}

/** Each turn of the model until it answers. */
const turns: readonly (readonly ToolCall[])[] = [
  [
    { tool: 'read_file', input: { file_path: 'note.txt' } },
    { tool: 'read_file', input: { file_path: 'other.txt' } },
  ],
  [
    {
      tool: 'replace',
      input: { file_path: 'note.txt', instruction: 'Correct it.', old_string: 'is 42', new_string: 'is 43' },
    },
  ],
  [{ tool: 'run_shell_command', input: { command: 'cat note.txt' } }],
]
export const answer = 'It is 43 now.'
export const turnCount = turns.length + 1
export const resultCount = turns.flat().length

/** The reasoning that a provider has to get back with the calls that it led to, as the provider sends it. */
export const kept: Readonly<Record<DialectName, (turn: number) => string>> = {
  chat: (turn) => `Thought ${turn}.`,
  messages: (turn) => `c2lnbmF0dXJl${turn}`,
  gemini: (turn) => `dGhvdWdodA${turn}=`,
  responses: (turn) => `sealed-${turn}`,
}

/** The model's next turn, by the number of results in the conversation. */
function playTurn(dialect: DialectName, results: number): ProviderBytes {
  let turn = 0
  for (let left = results; left > 0; turn += 1) left -= turns[turn]?.length ?? left
  const calls = (turns[turn] ?? []).map(({ tool, input }, at) => ({
    id: `call_${turn}_${at}`,
    name: tool,
    json: JSON.stringify(input),
  }))
  const reasoning = kept[dialect](turn)
  const isDone = calls.length === 0
  switch (dialect) {
    case 'chat':
      return isDone
        ? chatBytes({ deltas: [{ content: answer }], message: { content: answer }, finish: 'stop' })
        : chatBytes({
            deltas: [
              { reasoning_content: reasoning },
              ...calls.map(({ id, name, json }, at) => callOpening(at, id, name, json)),
            ],
            message: {
              reasoning_content: reasoning,
              tool_calls: calls.map(({ id, name, json }) => wholeCall(id, name, json)),
            },
            finish: 'tool_calls',
          })
    case 'messages':
      return isDone
        ? messagesBytes({ blocks: [textBlock(answer)], stop: 'end_turn' })
        : messagesBytes({
            blocks: [thinkingBlock(reasoning, 'Hm.'), ...calls.map(({ id, name, json }) => callBlock(id, name, json))],
            stop: 'tool_use',
          })
    case 'gemini':
      // Of parallel calls, Google signs the first.
      return geminiBytes({
        records: isDone
          ? [[{ text: answer }]]
          : [
              [thoughtPart('Hm.')],
              calls.map(({ id, name, json }, at) =>
                callPart(id, name, json, at === 0 ? { thoughtSignature: reasoning } : {}),
              ),
            ],
      })
    case 'responses':
      return responsesBytes({
        items: isDone
          ? [messageItem(0, answer)]
          : [
              reasoningItem(0, reasoning, 'Hm.'),
              ...calls.map(({ id, name, json }, at) => callItem(at + 1, id, name, json)),
            ],
      })
  }
}

const resultMarks: Readonly<Record<DialectName, string>> = {
  chat: '"role":"tool"',
  messages: '"type":"tool_result"',
  gemini: '"functionResponse":',
  responses: '"type":"function_call_output"',
}

export function resultsIn(call: UpstreamCall): number {
  return JSON.stringify(call.json()).split(resultMarks[dialectOfPath(call.path)]).length - 1
}

export const model: UpstreamHandler = (call, reply) =>
  answerWith((dialect) => playTurn(dialect, resultsIn(call)))(call, reply)

export interface Run {
  readonly exitCode: number
  /** The output of `--output-format json`. */
  readonly result: Readonly<Record<string, unknown>>
  readonly printed: string
  /** The gateway's records of the calls. */
  readonly records: readonly Record<string, unknown>[]
  /** What reached the provider. */
  readonly calls: readonly UpstreamCall[]
}

/** Ends a program that hangs. It takes four seconds, and minutes on a machine under heavy load. */
const runMs = 1_200_000

/** A home with Gemini CLI's settings in it, and a folder with the files of the task. */
export class Desk implements Disposable {
  readonly #home = mkdtempSync(join(tmpdir(), 'tollgate-gemini-cli-'))
  readonly #work = join(this.#home, 'work')
  readonly #program: string
  readonly #stage: Stage
  #env: Record<string, string> = {}
  #model = ''

  constructor(program: string, stage: Stage) {
    this.#program = program
    this.#stage = stage
    mkdirSync(this.#work)
    writeFileSync(join(this.#work, 'note.txt'), 'the answer is 42\n')
    writeFileSync(join(this.#work, 'other.txt'), 'all quiet\n')
  }

  get note(): string {
    return readFileSync(join(this.#work, 'note.txt'), 'utf8').trim()
  }

  async connect(id: string): Promise<void> {
    const { gateway } = this.#stage
    const settings = join(this.#home, '.gemini', 'settings.json')
    this.#model = id
    mkdirSync(join(this.#home, '.gemini'), { recursive: true })
    // It would report its use to Google and look for a newer version.
    const offline = { privacy: { usageStatisticsEnabled: false }, general: { enableAutoUpdate: false } }
    writeFileSync(settings, JSON.stringify(offline))
    const env = { TOLLGATE_URL: gateway.url, TOLLGATE_KEY: gateway.key, HOME: this.#home }
    const { exit, out, err } = await runHere(['connect', 'gemini', '--model', id], { env, cwd: this.#home })
    if (exit !== 0) throw new Error(`connect gemini: ${err}`)
    this.#env = Object.fromEntries(
      [...out.matchAll(/^ {2}export (\w+)=(.+)$/gm)].map(([, name, value]) => [name, value]),
    )
  }

  async run(...args: readonly string[]): Promise<Run> {
    const { gateway, upstream } = this.#stage
    const requests = () => gateway.logged().filter(({ message }) => message === 'request')
    const before = requests().length
    const callsBefore = upstream.calls.length
    const child = Bun.spawn(
      [
        'node',
        this.#program,
        '--output-format',
        'json',
        '--approval-mode',
        'yolo',
        '--skip-trust',
        '--model',
        this.#model,
        ...args,
      ],
      {
        cwd: this.#work,
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: runMs,
        killSignal: 'SIGKILL',
        env: { PATH: process.env.PATH ?? '', HOME: this.#home, GEMINI_CLI_NO_RELAUNCH: 'true', ...this.#env },
      },
    )
    const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    return {
      exitCode,
      result: output.startsWith('{') ? (JSON.parse(output) as Record<string, unknown>) : {},
      printed: `${output}${errors}`,
      records: requests().slice(before),
      calls: upstream.calls.slice(callsBefore),
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#home, { recursive: true, force: true })
  }
}
