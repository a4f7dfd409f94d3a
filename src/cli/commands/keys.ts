// `tollgate keys`: made, listed, rotated, revoked. A secret is printed once, alone on the standard output, so that
// `KEY=$(tollgate keys create …)` holds nothing else.

import { type CommandContext, type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { findProject } from '../find-things.ts'
import { type JsonObject, shownAt, textAt } from '../json-members.ts'
import { findNamesakes, noteNamesakes, projectNames } from '../names.ts'
import { warnIfNothingOffered } from '../offered-models.ts'
import { limitOptions, limitsTyped, readLimits, readSpan, readTime } from '../read-values.ts'
import { exitCodes, orListedBy, Refusal, usageRefusal } from '../refusal.ts'
import { shownLimits, shownModels, shownTime } from '../shown-values.ts'
import { cleanText, renderTable } from '../table.ts'

const allOfThem = 10_000
const keyId = { name: 'ID', prefix: 'key_' }
const yes = { help: 'do not ask, also on a terminal' }
const listing = 'tollgate keys list'
const typed = {
  name: '--name',
  models: '--models',
  sources: '--from',
  expires_at: '--expires',
  ...limitsTyped('limits.'),
}

const listKeys: CommandDefinition = {
  words: ['keys', 'list'],
  isDefault: true,
  summary: 'lists keys, oldest first',
  options: {
    workspace: { value: 'ID', help: 'only keys of this workspace' },
    project: { value: 'ID', help: 'only keys of this project' },
  },
  examples: ['tollgate keys', 'tollgate keys list --project prj_… --json'],
  async run(context, input) {
    const query = { workspace_id: input.text('workspace'), project_id: input.text('project') }
    const list = await context.api.list('/api/keys', query, allOfThem)
    if (list instanceof Refusal) return list
    if (context.json) return printJson(context, list)
    const titles = ['ID', 'NAME', 'SECRET', 'STATUS', 'PROJECT', 'MODELS', 'LIMITS', 'EXPIRES', 'LAST USED (UTC)']
    const projectName = await projectNames(context.api, list.data)
    const rows = list.data.map((key) => [
      shownAt(key, 'id'),
      shownAt(key, 'name'),
      `…${shownAt(key, 'last4')}`,
      shownAt(key, 'status'),
      projectName(shownAt(key, 'project_id')),
      ownModels(key),
      shownLimits(key.limits),
      shownTime(textAt(key, 'expires_at')).slice(0, 10),
      shownTime(textAt(key, 'last_used_at')),
    ])
    const columns = titles.map((title) => ({ title }))
    context.terminal.print(renderTable(columns, rows, context.terminal))
    return undefined
  },
}

const createKey: CommandDefinition = {
  words: ['keys', 'create'],
  summary: 'makes a key; its secret is shown this once',
  options: {
    name: { value: 'TEXT', help: 'for people; required' },
    project: { value: 'ID', help: 'which project; may be left out if there is only one' },
    workspace: { value: 'ID', help: 'where to look for the project' },
    models: { value: 'LIST', isRepeatable: true, help: "narrows the project's models: ids and patterns, by commas" },
    from: { value: 'LIST', isRepeatable: true, help: 'addresses and ranges it may be used from, such as 10.0.0.0/8' },
    expires: { value: 'WHEN', help: 'a span (30d), a day (2027-01-31) or a time; absent = never' },
    ...limitOptions,
    'idempotency-key': { value: 'TEXT', help: 'makes a repeated call answer with the same key' },
  },
  examples: [
    'tollgate keys create --name ci --rpm 60 --spend-per-day 5',
    'KEY=$(tollgate keys create --project prj_… --name laptop --expires 90d)',
  ],
  async run(context, input) {
    const body = newKeyBody(input, context.clock.now())
    if (body instanceof Refusal) return body
    const project = await findProject(context.api, input.text('project'), input.text('workspace'))
    if (project instanceof Refusal) return project
    const key = await context.api.call({
      method: 'POST',
      path: `/api/projects/${encodeURIComponent(project)}/keys`,
      body,
      idempotencyKey: input.text('idempotency-key'),
      typed,
    })
    if (key instanceof Refusal) return key
    printSecret(context, key, 'made')
    const query = { project_id: project }
    noteNamesakes(context, 'key', await findNamesakes(context.api, key, { path: '/api/keys', query }))
    await warnIfNothingOffered(context, { what: 'key', projectId: project, thing: key })
    return undefined
  },
}

function newKeyBody(input: CommandInput, now: number): JsonObject | Refusal {
  const name = input.text('name')
  if (name === undefined) return usageRefusal('--name is missing.', 'tollgate keys create --name laptop')
  const limits = readLimits(input)
  if (limits instanceof Refusal) return limits
  const when = input.text('expires')
  const expiresAt = when === undefined ? undefined : readTime(when, '--expires', now)
  if (expiresAt instanceof Refusal) return expiresAt
  const [models, sources] = [input.texts('models'), input.texts('from')]
  return {
    name,
    ...(models === undefined ? {} : { models }),
    ...(sources === undefined ? {} : { sources }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
  }
}

const revokeKey: CommandDefinition = {
  words: ['keys', 'revoke'],
  summary: 'ends a key for good, at once here and within 5 s on other replicas',
  positionals: [keyId],
  options: { yes },
  examples: ['tollgate keys revoke key_… --yes'],
  async run(context, input) {
    const path = `/api/keys/${encodeURIComponent(input.positionals[0] ?? '')}`
    const agreed = await agree(context, input, path, 'Revoke')
    if (agreed instanceof Refusal) return agreed
    const key = orListedBy(await context.api.call({ method: 'POST', path: `${path}/revoke`, body: {} }), listing)
    if (key instanceof Refusal) return key
    if (context.json) return printJson(context, key)
    context.terminal.print(`Key "${cleanText(shownAt(key, 'name'))}" (…${shownAt(key, 'last4')}) is revoked.\n`)
    return undefined
  },
}

const rotateKey: CommandDefinition = {
  words: ['keys', 'rotate'],
  summary: 'gives a key a new secret, shown this once',
  details: 'The old secret ends at once, or after the overlap.',
  positionals: [keyId],
  options: { overlap: { value: 'SPAN', help: 'how long the old secret stays good, such as 1h' }, yes },
  examples: ['tollgate keys rotate key_…', 'tollgate keys rotate key_… --overlap 1h'],
  async run(context, input) {
    const span = input.text('overlap')
    const overlap = span === undefined ? undefined : readSpan(span)
    if (span !== undefined && overlap === undefined) {
      return usageRefusal(`--overlap must be a span such as 15m, 1h or 7d, not "${span}".`)
    }
    const path = `/api/keys/${encodeURIComponent(input.positionals[0] ?? '')}`
    const agreed = overlap === undefined ? await agree(context, input, path, 'Replace the secret of') : undefined
    if (agreed instanceof Refusal) return agreed
    const body = overlap === undefined ? {} : { overlap_seconds: overlap }
    const key = orListedBy(await context.api.call({ method: 'POST', path: `${path}/rotate`, body }), listing)
    return key instanceof Refusal ? key : printSecret(context, key, 'rotated')
  },
}

/** Asks only a person, and shows what the key is and when it was used last. */
async function agree(context: CommandContext, input: CommandInput, path: string, what: string) {
  if (!context.terminal.isInteractive || input.isSet('yes')) return undefined
  const key = orListedBy(await context.api.call({ path }), listing)
  if (key instanceof Refusal) return key
  const used = textAt(key, 'last_used_at')
  const last = used === undefined ? 'never used' : `last used ${shownTime(used)} UTC`
  const named = `key "${cleanText(shownAt(key, 'name'))}" (…${shownAt(key, 'last4')}), ${last}`
  const answer = await context.terminal.ask(`${what} ${named}? [y/N] `)
  return /^y(es)?$/i.test(answer.trim()) ? undefined : new Refusal(exitCodes.failed, 'nothing was changed.', '--yes')
}

function printSecret(context: CommandContext, key: JsonObject, done: string): undefined {
  if (context.json) return printJson(context, key)
  const { terminal } = context
  terminal.complain(`Key "${cleanText(shownAt(key, 'name'))}" ${done}: ${shownAt(key, 'id')}\n`)
  terminal.complain(`Limits ${shownLimits(key.limits)}; models ${cleanText(ownModels(key))}. Shown this once:\n`)
  terminal.print(`${shownAt(key, 'secret')}\n`)
}

/** Without a list of its own a key may what its project may, which need not be everything. */
function ownModels(key: JsonObject): string {
  return Array.isArray(key.models) ? shownModels(key) : "its project's"
}

export const keyCommands: readonly CommandDefinition[] = [listKeys, createKey, revokeKey, rotateKey]
