// Coding agents themselves, headless: how each is installed, how it is started after `tollgate connect`, and which tool
// of it reads a file. A fake model calls that tool; everything else is real.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { stageConfig } from '../conformance/cells.ts'
import { type Ran, runHere } from '../parts/command-line.ts'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { failFirst } from '../parts/failing-provider.ts'
import type { Gateway } from '../parts/gateway.ts'
import { startUpstream } from '../parts/upstream.ts'
import { type Fetched, fetchOnce } from '../recipes/fetched.ts'
import { startLoopbackProxy } from './loopback-proxy.ts'
import { type Step, scriptedModel } from './scripted-model.ts'

export interface RealAgent {
  /** As `connect` calls it. */
  readonly id: string
  readonly package: string
  readonly version: string
  readonly from: 'npm' | 'PyPI'
  /** The folder of its program in the folder it is installed in. */
  readonly bin: string
  /** The file that `connect` changes, in the home folder, and its content before. Absent: `connect` changes no file. */
  readonly settings?: { readonly path: string; readonly before: string | undefined }
  /** Lines for a shell. `printed`: what `connect` printed. */
  script(printed: string): string
  readonly env?: Readonly<Record<string, string>>
  /** What the model does to read a file. Absent: the agent has no tools, and the model writes the file anew. */
  read?(path: string): Step
  /** Whether it names its session. */
  readonly namesSession: boolean
}

export const prompt = 'What do the notes say?'
const npmBin = 'node_modules/.bin'
const platform = `${process.platform}-${process.arch}`
export const answer = 'The notes are read.'

/** The commands that `connect` printed: variables, and calls of the program. */
function commandsIn(printed: string, program: string): string {
  const lines = printed.split('\n').filter((line) => line.startsWith('  export ') || line.startsWith(`  ${program} `))
  return lines.map((line) => line.trim()).join('\n')
}

const call = (tool: string, input: object): Step => ({ tool, input: JSON.stringify(input) })

export const realAgents: readonly RealAgent[] = [
  {
    ...{ id: 'claude', package: '@anthropic-ai/claude-code', version: '2.1.325', from: 'npm', namesSession: true },
    bin: `node_modules/@anthropic-ai/claude-code-${platform}`,
    settings: { path: '.claude/settings.json', before: '{"env":{"MINE":"1"}, "cleanupPeriodDays": 7}' },
    env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    script: () => `claude -p '${prompt}' --allowedTools Read`,
    read: (path) => call('Read', { file_path: path }),
  },
  {
    ...{ id: 'codex', package: '@openai/codex', version: '0.169.0', from: 'npm', bin: npmBin, namesSession: true },
    settings: { path: '.codex/tollgate.config.toml', before: undefined },
    script: () => `codex --profile tollgate exec --skip-git-repo-check --sandbox danger-full-access '${prompt}'`,
    read: (path) => call('exec_command', { cmd: `cat ${path}` }),
  },
  {
    ...{
      id: 'gemini',
      package: '@google/gemini-cli',
      version: '0.61.0',
      from: 'npm',
      bin: npmBin,
      namesSession: false,
    },
    settings: {
      path: '.gemini/settings.json',
      before: '{"ui": {"hideTips": true}, "privacy": {"usageStatisticsEnabled": false}}',
    },
    script: (printed) => `${commandsIn(printed, 'gemini')} --skip-trust --yolo --prompt '${prompt}'`,
    read: (path) => call('read_file', { file_path: path }),
  },
  {
    // The last version for Node 20.
    ...{
      id: 'qwen',
      package: '@qwen-code/qwen-code',
      version: '0.15.10',
      from: 'npm',
      bin: npmBin,
      namesSession: false,
    },
    script: (printed) => `${commandsIn(printed, 'qwen')} --yolo --prompt '${prompt}'`,
    read: (path) => call('read_file', { file_path: path }),
  },
  {
    ...{ id: 'cline', package: 'cline', version: '3.0.65', from: 'npm', bin: npmBin, namesSession: false },
    script: (printed) => `${commandsIn(printed, 'cline')}\ncline '${prompt}'`,
    read: (path) => call('read_files', { files: [{ path }] }),
  },
  {
    ...{ id: 'opencode', package: 'opencode-ai', version: '1.18.33', from: 'npm', namesSession: true },
    bin: `node_modules/opencode-${platform}/bin`,
    settings: { path: '.config/opencode/opencode.json', before: '{"autoupdate": false, "share": "disabled"}' },
    env: { OPENCODE_DISABLE_MODELS_FETCH: '1' },
    script: () => `opencode run '${prompt}'`,
    read: (path) => call('read', { filePath: path }),
  },
  {
    ...{
      id: 'continue',
      package: '@continuedev/cli',
      version: '1.5.47',
      from: 'npm',
      bin: npmBin,
      namesSession: false,
    },
    settings: { path: '.continue/tollgate.yaml', before: undefined },
    env: { CONTINUE_TELEMETRY_ENABLED: '0' },
    script: () => `cn --config ~/.continue/tollgate.yaml -p '${prompt}'`,
    read: (path) => call('Read', { filepath: path }),
  },
  {
    ...{ id: 'goose', package: `@aaif/goose-binary-${platform}`, version: '0.20.2', from: 'npm', namesSession: true },
    bin: `node_modules/@aaif/goose-binary-${platform}/bin`,
    script: (printed) => `${commandsIn(printed, '-')}\ngoose run --text '${prompt}'`,
    read: (path) => call('shell', { command: `cat ${path}` }),
  },
  {
    ...{ id: 'llm', package: 'llm', version: '0.36', from: 'PyPI', bin: 'bin', namesSession: false },
    script: (printed) => `${commandsIn(printed, 'llm')}
cat > "$(dirname "$(llm logs path)")/extra-openai-models.yaml" <<'END'
${/^ {2}- model_id:.*(\n {4}.*)*/m.exec(printed)?.[0].replaceAll(/^ {2}/gm, '')}
END
llm -m tollgate --functions 'def read(path: str) -> str: return open(path).read()' '${prompt}'`,
    read: (path) => call('read', { path }),
  },
  {
    ...{ id: 'aider', package: 'aider-chat', version: '0.86.2', from: 'PyPI', bin: 'bin', namesSession: false },
    settings: { path: '.config/aider/tollgate.yml', before: undefined },
    script: () => `aider --config ~/.config/aider/tollgate.yml --yes --no-git --message '${prompt}' note-0.txt`,
  },
]

/** Its folder by name and version, or why it cannot be had. */
export function fetchAgent({ package: name, version, from }: RealAgent): Promise<Fetched> {
  return fetchOnce(`${name.split('/').at(-1)}-${version}`, (folder) =>
    from === 'npm'
      ? [
          {
            what: 'npm install',
            command: [
              ...['npm', 'install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--no-save'],
              ...['--fetch-retries=1', `${name}@${version}`],
            ],
          },
        ]
      : [
          { what: 'python3 -m venv', command: ['python3', '-m', 'venv', folder] },
          {
            what: 'pip install',
            command: [
              ...[join(folder, 'bin/python'), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'],
              ...['--retries', '1', '--timeout', '20', `${name}==${version}`],
            ],
          },
        ],
  )
}

const noteText = (at: number) => `gate ${at} is open`

const proxyVariables = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy']

/** A home and a working folder with notes for one agent. */
export class Desk implements Disposable {
  readonly home = mkdtempSync(join(tmpdir(), 'tollgate-agent-'))
  readonly work = join(this.home, 'work')

  constructor(
    readonly agent: RealAgent,
    readonly folder: string,
    readonly gateway: Pick<Gateway, 'url' | 'dataFolder'>,
    readonly proxyUrl: string,
    readonly notes = 1,
  ) {
    mkdirSync(this.work)
    for (let at = 0; at < notes; at++) writeFileSync(this.notePath(at), `${noteText(at)}\n`)
    const { path, before } = agent.settings ?? { path: '', before: undefined }
    if (before === undefined) return
    mkdirSync(dirname(join(this.home, path)), { recursive: true })
    writeFileSync(join(this.home, path), before)
  }

  notePath(at: number): string {
    return join(this.work, `note-${at}.txt`)
  }

  /** Reads each note; for an agent without tools, changes the first. */
  get model() {
    const { read } = this.agent
    if (!read) return scriptedModel([], 'note-0.txt\n```\ngate 0 is closed\n```\n')
    const paths = Array.from({ length: this.notes }, (_, at) => this.notePath(at))
    return scriptedModel(paths.map(read), answer)
  }

  /** Whether an agent without tools has done its task. */
  get isNoteChanged(): boolean {
    return readFileSync(this.notePath(0), 'utf8') === 'gate 0 is closed\n'
  }

  get settings(): string | undefined {
    const path = join(this.home, this.agent.settings?.path ?? '-')
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined
  }

  /** `url`: the gateway's, if it is not called directly. */
  tollgate(args: readonly string[], url = this.gateway.url): Promise<Ran> {
    const token = readFileSync(join(this.gateway.dataFolder, 'admin-token'), 'utf8').trim()
    return runHere(args, {
      env: { TOLLGATE_URL: url, TOLLGATE_ADMIN_TOKEN: token, HOME: this.home },
      cwd: this.home,
    })
  }

  get environment(): Record<string, string> {
    return {
      PATH: [join(this.folder, this.agent.bin), process.env.PATH].join(delimiter),
      HOME: this.home,
      NO_COLOR: '1',
      ...Object.fromEntries(proxyVariables.map((name) => [name, this.proxyUrl])),
      ...{ NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' },
      ...this.agent.env,
    }
  }

  /** Runs the task after `connect` has printed this. */
  async run(printed: string): Promise<{ readonly exitCode: number; readonly printed: string }> {
    const { id, from } = this.agent
    // The folder was renamed after the install, and scripts of a virtual environment contain its path.
    const start = from === 'PyPI' ? `${id}() { python -m ${id} "$@"; }\n` : ''
    const child = Bun.spawn(['sh', '-e', '-c', start + this.agent.script(printed)], {
      cwd: this.work,
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ends a program that hangs. They take seconds, and minutes on a machine under heavy load.
      timeout: 900_000,
      killSignal: 'SIGKILL',
      env: this.environment,
    })
    const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    return { exitCode, printed: output + errors }
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true })
  }
}

export interface Tried {
  /** Everything that is wrong; empty = all is well. */
  readonly faults: readonly string[]
  readonly printed: string
  readonly seconds: number
}

interface RequestRow {
  readonly key_id: string
  readonly session: string | null
  readonly status: number
}

/** The gateway's program with its default settings, and with the test's models at a provider of each dialect. */
export async function startProgram(upstreamUrl: string) {
  const dataFolder = mkdtempSync(join(tmpdir(), 'tollgate-agents-'))
  const configPath = join(dataFolder, 'tollgate.yaml')
  writeFileSync(configPath, stageConfig(upstreamUrl))
  const { url, key, stop } = await startCrashGateway({ dataFolder, databaseUrl: undefined, configPath })
  return {
    ...{ url, key, dataFolder },
    async stop() {
      await stop()
      rmSync(dataFolder, { recursive: true, force: true })
    },
  }
}

/** How the provider fails before each answer, and how often in a row. */
export interface Failures {
  readonly times: number
  /** One of `hiccups`. */
  readonly hiccup: string
}

/**
 * Connects the agent to the gateway's program with its default settings, lets it read a note, looks at its requests, and
 * undoes.
 */
export async function tryConnect(agent: RealAgent, folder: string, failures?: Failures): Promise<Tried> {
  const upstream = startUpstream((_, reply) => reply.json(500, {}))
  const program = await startProgram(upstream.url)
  const proxy = await startLoopbackProxy()
  using desk = new Desk(agent, folder, program, proxy.url)
  try {
    upstream.handle(failures ? failFirst(failures.times, failures.hiccup, desk.model) : desk.model)
    const before = desk.settings
    const connected = await desk.tollgate(['connect', agent.id, '--model', 'test/plain-1'])
    const written = desk.settings
    const key = /key_\w+/.exec(connected.err)?.[0]
    const startedMs = performance.now()
    const run = await desk.run(connected.out)
    const seconds = (performance.now() - startedMs) / 1000
    const requests = JSON.parse((await desk.tollgate(['requests', '--json'])).out).data as RequestRow[]
    const undone = await desk.tollgate(['connect', agent.id, '--undo'])
    const sessions = new Set(requests.map(({ session }) => session))
    const isDone = agent.read
      ? run.printed.includes(answer) && upstream.calls.some((call) => JSON.stringify(call.json()).includes(noteText(0)))
      : desk.isNoteChanged
    const tries = 1 + (failures?.times ?? 0)
    const wrong = [
      connected.exit !== 0 && `connect: ${connected.err}`,
      agent.settings && written === before && 'connect wrote nothing',
      run.exitCode !== 0 && `exit code ${run.exitCode}`,
      !isDone && 'the task is not done',
      requests.length === 0 && 'no request was recorded',
      !requests.every(({ key_id: id, status }) => id === key && status === 200) &&
        'a request failed or used another key',
      upstream.calls.length !== tries * requests.length &&
        `${upstream.calls.length} provider calls for ${requests.length} requests`,
      (sessions.size !== 1 || sessions.has(null) === agent.namesSession) && `sessions ${[...sessions].join(', ')}`,
      agent.settings && undone.exit !== 0 && `undo: ${undone.err}`,
      desk.settings !== before && `after undo: ${desk.settings}`,
    ]
    return { faults: wrong.filter((fault) => typeof fault === 'string'), printed: run.printed, seconds }
  } finally {
    proxy.stop()
    await program.stop()
    upstream.stop()
  }
}
