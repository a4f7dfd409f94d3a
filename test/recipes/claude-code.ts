// Claude Code, headless, on a model that a Chat Completions provider serves: the program itself, the settings of its
// recipe, and a provider that plays a model which thinks, calls two tools at once, and then tells what they said.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGateway } from '../parts/gateway.ts'
import { startUpstream, type UpstreamHandler } from '../parts/upstream.ts'
import { recipePath } from './client.ts'
import { fetchOnce } from './fetched.ts'

export const claudeCode = {
  name: 'Claude Code',
  version: '2.1.325',
  by: 'itself',
  recipe: 'claude-code.md',
  examples: ['stream', 'tools', 'parallel'],
} as const

/** The program's path, or why there is none. */
export async function findClaudeCode(): Promise<{ readonly program: string } | { readonly reason: string }> {
  // The binary is in an optional package for the platform, 350 MB of it; the install script would only copy it.
  const settings = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--fetch-retries=1']
  const fetched = await fetchOnce(`claude-code-${claudeCode.version}`, (folder) => [
    {
      what: 'npm install',
      command: ['npm', 'install', '--prefix', folder, ...settings, `@anthropic-ai/claude-code@${claudeCode.version}`],
    },
  ])
  if ('reason' in fetched) return fetched
  const found = new Bun.Glob('node_modules/@anthropic-ai/claude-code-*/claude').scanSync({ cwd: fetched.folder })
  const [program] = [...found]
  return program ? { program: join(fetched.folder, program) } : { reason: 'it has no binary for this platform' }
}

/** The first block of code of the recipe for a pasted key in this language. */
export function recipeBlock(language: 'sh' | 'json'): string {
  const [, withKey = ''] = readFileSync(recipePath(claudeCode.recipe), 'utf8').split('\n## With a key\n')
  return new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(withKey)?.[1] ?? ''
}

export interface ChatBody {
  readonly stream: boolean
  readonly tools: readonly { readonly function: { readonly name: string } }[]
  readonly messages: readonly {
    readonly role: string
    readonly content: unknown
    readonly tool_call_id?: string
    readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[]
  }[]
}

export interface Task {
  readonly exitCode: number
  /** The output of `--output-format json`. */
  readonly result: Record<string, unknown>
  readonly printed: string
  /** The bodies that reached the provider, in order. */
  readonly asked: readonly ChatBody[]
  /** The gateway's log lines of its requests. */
  readonly records: readonly Record<string, unknown>[]
}

/** The files of the task. */
const notes = { 'gate.txt': 'the gate is open', 'night.txt': 'all quiet' }

/** Ends a program that hangs. It takes three seconds, and minutes on a machine under heavy load. */
const taskMs = 1_200_000

/** `disturb`: what the provider does in place of the model, where it does not behave. */
export async function runTask(
  program: string,
  disturb: (model: UpstreamHandler) => UpstreamHandler = (model) => model,
  env: Readonly<Record<string, string>> = {},
): Promise<Task> {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-claude-code-'))
  const work = join(home, 'work')
  mkdirSync(work)
  for (const [name, text] of Object.entries(notes)) writeFileSync(join(work, name), `${text}\n`)
  const upstream = startUpstream(disturb(playModel(Object.keys(notes).map((name) => join(work, name)))))
  const gateway = await startGateway({ config: configFor(upstream.url) })
  try {
    const task = `${recipeBlock('sh')}exec "$0" -p 'What do both notes say?' \
      --output-format json --allowedTools Read --max-turns 4`
    const child = Bun.spawn(['sh', '-c', task, program], {
      cwd: work,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: taskMs,
      killSignal: 'SIGKILL',
      env: {
        PATH: process.env.PATH ?? '',
        HOME: home,
        // Its temporary files are removed with it.
        CLAUDE_CODE_TMPDIR: home,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        TOLLGATE_URL: gateway.url,
        TOLLGATE_KEY: gateway.key,
        TOLLGATE_MODEL: 'acme/coder',
        ...env,
      },
    })
    const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    const result = output.startsWith('{') ? (JSON.parse(output) as Record<string, unknown>) : {}
    const asked = upstream.calls.map((call) => call.json() as unknown as ChatBody)
    const records = gateway.logged().filter(({ message }) => message === 'request')
    return { exitCode, result, printed: `${output}${errors}`, asked, records }
  } finally {
    await gateway.stop()
    upstream.stop()
    rmSync(home, { recursive: true, force: true })
  }
}

function configFor(upstreamUrl: string): string {
  return JSON.stringify({
    providers: [{ id: 'acme', dialect: 'openai-chat', base_url: `${upstreamUrl}/v1`, api_key: 'upstream-secret' }],
    models: [
      {
        id: 'acme/coder',
        price: { input: '1.00', output: '2.00' },
        context_tokens: 200_000,
        max_output_tokens: 32_000,
        routes: [{ provider: 'acme', model: 'coder-1' }],
      },
    ],
  })
}

function playModel(paths: readonly string[]): UpstreamHandler {
  return async (call, reply) => {
    const { messages } = call.json() as unknown as ChatBody
    const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content).trim())
    const deltas =
      results.length === 0
        ? [
            { role: 'assistant', content: null, reasoning_content: 'Two things ' },
            { reasoning_content: 'to look up.' },
            { content: 'Let me look.' },
            ...paths.flatMap(readDeltas),
          ]
        : [{ role: 'assistant', content: 'They said: ' }, { content: results.join('; ') }]
    const finish = results.length === 0 ? 'tool_calls' : 'stop'
    await reply.startStream()
    for (const delta of deltas) await reply.chunk(record([{ index: 0, delta, finish_reason: null }]))
    await reply.chunk(record([{ index: 0, delta: {}, finish_reason: finish }]))
    await reply.chunk(record([], { prompt_tokens: 9000, completion_tokens: 40, total_tokens: 9040 }))
    await reply.chunk('data: [DONE]\n\n')
    await reply.finish()
  }
}

function readDeltas(path: string, index: number): object[] {
  const text = JSON.stringify({ file_path: path })
  const piece = (part: string) => ({ tool_calls: [{ index, function: { arguments: part } }] })
  return [
    { tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'Read', arguments: '' } }] },
    piece(text.slice(0, 7)),
    piece(text.slice(7)),
  ]
}

function record(choices: object[], usage?: object): string {
  const chunk = {
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'coder-1',
    choices,
    ...(usage && { usage }),
  }
  return `data: ${JSON.stringify(chunk)}\n\n`
}
