// `tollgate import`: converts the configuration of another gateway. It prints the file, or writes it if none exists, and
// lists everything that was not imported. Keys are referenced by variables; their values go to a file only on request.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { SQL } from 'bun'
import { parse } from 'yaml'
import { z } from 'zod'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { renderDeclaration } from '../declaration.ts'
import type { Draft } from '../import/draft.ts'
import { importLitellm } from '../import/litellm.ts'
import { importNewApi, rowsOf } from '../import/new-api.ts'
import { importOpenrouter } from '../import/openrouter.ts'
import { exitCodes, Refusal } from '../refusal.ts'
import { cleanText } from '../values.ts'

const options = {
  write: { value: 'FILE', help: 'writes the configuration to this new file instead of the standard output' },
  'keys-file': { value: 'FILE', help: 'writes the keys found to this new file (0600), one NAME=VALUE per line' },
} as const

const details = `Nothing is called and nothing in effect changes: start a gateway with the file, or merge it into tollgate.yaml. What was
not carried is listed with the reason. docs/coming-from has the complete guide.`

const litellm: CommandDefinition = {
  words: ['import', 'litellm'],
  isLocal: true,
  summary: "makes a configuration file from that of LiteLLM's proxy",
  details,
  positionals: [{ name: 'FILE' }],
  options,
  examples: ['tollgate import litellm config.yaml --write tollgate.yaml --keys-file keys.env'],
  run: async (context) =>
    finish(
      context,
      'litellm',
      reading(context, () => importLitellm(parse(readText(context)))),
    ),
}

const openrouter: CommandDefinition = {
  words: ['import', 'openrouter'],
  isLocal: true,
  summary: "makes OpenRouter's model ids work here: aliases, and routes for ids that are not built in",
  details: `FILE has the ids in use, one per line, or is the JSON of https://openrouter.ai/api/v1/models, which also has prices.
Without it every built-in model is considered. ${details}`,
  positionals: [{ name: 'FILE', isOptional: true }],
  options,
  examples: ['tollgate import openrouter', 'tollgate import openrouter ids.txt --write tollgate.yaml'],
  run: async (context) =>
    finish(
      context,
      'openrouter',
      reading(context, () => importOpenrouter(context.first === '' ? undefined : readText(context))),
    ),
}

const newApi: CommandDefinition = {
  words: ['import', 'new-api'],
  isLocal: true,
  summary: 'makes a configuration file from the channels and tokens of new-api or one-api',
  details: `FILE is its SQLite database, or JSON: an answer of GET /api/channel/ or /api/token/, or {"channels": …, "tokens": …}. Tokens
become keys of a second file for tollgate config apply. ${details}`,
  positionals: [{ name: 'FILE' }],
  options: { ...options, declaration: { value: 'FILE', help: 'writes the keys that tokens become to this new file' } },
  examples: ['tollgate import new-api one-api.db --write tollgate.yaml --keys-file keys.env --declaration keys.yaml'],
  async run(context) {
    const rows = isSqlite(context)
      ? await readDatabase(context)
      : rowsOf(reading(context, () => parse(readText(context))))
    const { draft, declaration } = reading(context, () => importNewApi(rows))
    const target = context.text('declaration')
    if (declaration && target !== undefined) writeNew(context, target, renderDeclaration(declaration))
    else if (declaration) draft.leave('tokens', 'add --declaration keys.yaml to write them')
    finish(context, 'new-api', draft)
  },
}

function readText({ first, inputs: { cwd } }: CommandContext): string {
  try {
    return readFileSync(resolve(cwd, first), 'utf8')
  } catch {
    throw new Refusal(exitCodes.notFound, `${first} cannot be read.`)
  }
}

/** A file that is not what it should be is refused with the first fault. */
function reading<Result>({ first }: CommandContext, read: () => Result): Result {
  try {
    return read()
  } catch (thrown) {
    if (thrown instanceof Refusal) throw thrown
    const issue = thrown instanceof z.ZodError ? thrown.issues[0] : undefined
    const what = issue ? `${issue.path.join('.')}: ${issue.message}` : String(thrown)
    throw new Refusal(exitCodes.failed, `${first} cannot be imported: ${cleanText(what)}`)
  }
}

function isSqlite({ first, inputs: { cwd } }: CommandContext): boolean {
  const path = resolve(cwd, first)
  return existsSync(path) && readFileSync(path).subarray(0, 15).toString('latin1') === 'SQLite format 3'
}

async function readDatabase({ first, inputs: { cwd } }: CommandContext) {
  const sql = new SQL({ adapter: 'sqlite', filename: resolve(cwd, first), readonly: true })
  try {
    return { channels: await sql`SELECT * FROM channels`, tokens: await sql`SELECT * FROM tokens` }
  } catch (thrown) {
    throw new Refusal(exitCodes.failed, `${first} is not a database of new-api: ${String(thrown)}`)
  } finally {
    await sql.close()
  }
}

function writeNew({ inputs: { cwd } }: CommandContext, file: string, text: string, mode?: number): void {
  try {
    writeFileSync(resolve(cwd, file), text, { flag: 'wx', ...(mode !== undefined && { mode }) })
  } catch (thrown) {
    const isThere = thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST'
    throw new Refusal(exitCodes.failed, `${file} ${isThere ? 'exists; nothing was written.' : 'cannot be written.'}`)
  }
}

function finish(context: CommandContext, source: string, draft: Draft): void {
  const { terminal, json, text: option, first, inputs } = context
  const command = `tollgate import ${source} ${first}`.trimEnd()
  const text = draft.text(command)
  const variables = [...draft.variables].map(([name, { note }]) => ({ name, note: note ?? null }))
  const [target, keysFile] = [option('write'), option('keys-file')]
  if (target !== undefined) writeNew(context, target, text)
  if (keysFile !== undefined) writeNew(context, keysFile, keyLines(draft, inputs.env), 0o600)
  const config = target === undefined ? text : ''
  printResult(context, { config: text, variables, not_carried: draft.notCarried }, () => config)
  if (json) return
  const [models, names] = [draft.models.size, Object.keys(draft.aliases).length]
  terminal.complain(`${models} models, ${draft.providers.length} providers, ${names} aliases.\n`)
  if (variables.length > 0) {
    const lines = variables.map(({ name, note }) => `  ${name}${note === null ? '' : `   ${cleanText(note)}`}\n`)
    terminal.complain(`Set where the gateway is started:\n${lines.join('')}`)
  }
  if (draft.notCarried.length === 0) return
  const lines = draft.notCarried.map(({ what, why }) => `  ${cleanText(what)}: ${cleanText(why)}\n`)
  terminal.complain(`Not carried:\n${lines.join('')}`)
}

/**
 * The keys that the source has, and those that the environment has under another name. A name without a value is a
 * comment: as an empty assignment it would unset the variable of the shell that reads the file.
 */
function keyLines(draft: Draft, env: Readonly<Record<string, string | undefined>>): string {
  return [...draft.variables]
    .map(([name, { value, note }]) => {
      const from = /^the value of (\w+)$/.exec(note ?? '')?.[1]
      const found = value ?? (from === undefined ? undefined : env[from])
      return found ? `${name}=${found}\n` : `# ${name}=\n`
    })
    .join('')
}

export const importCommands: readonly CommandDefinition[] = [litellm, openrouter, newApi]
