// `tollgate keys` and `tollgate limits`. A secret is printed once, alone on the standard output, so that
// `KEY=$(tollgate keys create …)` contains nothing else.

import type { AnswerOf, BodyOf } from '../../api/client.ts'
import { type CommandContext, type CommandDefinition, type CommandInput, printResult } from '../command.ts'
import { namesakesIn, noteNamesakes, projectNames, warnIfNoModels } from '../lookup.ts'
import { answerCommand, everyItem, idempotencyOption, listCommand, projectOption } from '../operation-command.ts'
import { listedBy, usageRefusal } from '../refusal.ts'
import { cleanText, limitFields, readSpan, readTime, shownLimits, shownModels, shownTime } from '../values.ts'

type Key = AnswerOf<'getKey'>

const keyId = { name: 'ID', prefix: 'key_', parameter: 'id' } as const
const listing = 'tollgate keys list'

const keyCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['keys', 'list'],
    isDefault: true,
    summary: 'lists keys, oldest first',
    examples: ['tollgate keys', 'tollgate keys list --project prj_… --json'],
    operation: 'listKeys',
    options: {
      workspace: { value: 'ID', help: 'only keys of this workspace', field: 'workspace_id' },
      project: { value: 'ID', help: 'only keys of this project', field: 'project_id' },
    },
    async columns({ api }, keys) {
      const projectName = await projectNames(api, keys)
      return [
        ['ID', ({ id }) => id],
        ['NAME', ({ name }) => name],
        ['SECRET', ({ last4 }) => `…${last4}`],
        ['STATUS', ({ status }) => status],
        ['PROJECT', ({ project_id }) => projectName(project_id)],
        ['MODELS', keyModels],
        ['LIMITS', ({ limits }) => shownLimits(limits)],
        ['EXPIRES', ({ expires_at }) => shownTime(expires_at).slice(0, 10)],
        ['LAST USED (UTC)', ({ last_used_at }) => shownTime(last_used_at)],
      ]
    },
  }),
  answerCommand({
    words: ['keys', 'create'],
    summary: 'creates a key; its secret is shown only once',
    examples: [
      'tollgate keys create --name ci --rpm 60 --spend-per-day 5',
      'KEY=$(tollgate keys create --project prj_… --name laptop --expires 90d)',
    ],
    operation: 'createKey',
    options: {
      name: { value: 'TEXT', help: 'display name; required', field: 'name', isRequired: true },
      project: { ...projectOption, parameter: 'id' },
      workspace: { value: 'ID', help: 'where to look for the project' },
      models: {
        value: 'LIST',
        isRepeatable: true,
        help: "narrows the project's models: ids and patterns, separated by commas",
        field: 'models',
      },
      from: {
        value: 'LIST',
        isRepeatable: true,
        help: 'addresses and ranges it may be used from, such as 10.0.0.0/8',
        field: 'sources',
      },
      expires: {
        value: 'WHEN',
        help: 'a span (30d), a day (2027-01-31) or a time; absent = never',
        field: 'expires_at',
        read: readTime,
      },
      rpm: { ...limitFields.rpm, field: 'limits.requests_per_minute' },
      tpm: { ...limitFields.tpm, field: 'limits.tokens_per_minute' },
      concurrent: { ...limitFields.concurrent, field: 'limits.concurrent_requests' },
      'spend-per-day': { ...limitFields['spend-per-day'], field: 'limits.spend_per_day' },
      'spend-per-month': { ...limitFields['spend-per-month'], field: 'limits.spend_per_month' },
      'idempotency-key': { ...idempotencyOption, help: 'makes a repeated call return the same key' },
    },
    text: (key, context) => secretText(context, key, 'created'),
    async after(context, key) {
      const list = context.api.list('listKeys', { query: { project_id: key.project_id } }, everyItem)
      noteNamesakes(context, 'key', await namesakesIn(list, key))
      await warnIfNoModels(context, 'key', key.project_id, key.models)
    },
  }),
  answerCommand({
    words: ['keys', 'revoke'],
    summary: 'revokes a key permanently: immediately here, within 5 s on other replicas',
    examples: ['tollgate keys revoke key_… --yes'],
    operation: 'revokeKey',
    arguments: [keyId],
    listedBy: listing,
    confirm: (context, _input, { id = '' }) => questionAbout(context, id, 'Revoke'),
    text: ({ name, last4 }) => `Key "${cleanText(name)}" (…${last4}) is revoked.\n`,
  }),
  answerCommand({
    words: ['keys', 'rotate'],
    summary: 'gives a key a new secret, shown only once',
    details: 'The old secret ends immediately, or after the overlap.',
    examples: ['tollgate keys rotate key_…', 'tollgate keys rotate key_… --overlap 1h'],
    operation: 'rotateKey',
    arguments: [keyId],
    options: {
      overlap: {
        value: 'SPAN',
        help: 'how long the old secret stays valid, such as 1h',
        field: 'overlap_seconds',
        read: readSpan,
      },
    },
    listedBy: listing,
    async confirm(context, input, { id = '' }) {
      return input.isSet('overlap') ? undefined : await questionAbout(context, id, 'Replace the secret of')
    },
    text: (key, context) => secretText(context, key, 'rotated'),
  }),
]

/** Shows which key it is and when it was last used. */
async function questionAbout({ api }: CommandContext, id: string, what: string): Promise<string> {
  const key = await listedBy(listing, api.call('getKey', { id }))
  const last = key.last_used_at === null ? 'never used' : `last used ${shownTime(key.last_used_at)} UTC`
  return `${what} key "${cleanText(key.name)}" (…${key.last4}), ${last}?`
}

function secretText({ terminal }: CommandContext, key: AnswerOf<'createKey'>, done: string): string {
  terminal.complain(`Key "${cleanText(key.name)}" ${done}: ${key.id}\n`)
  terminal.complain(`Limits ${shownLimits(key.limits)}; models ${cleanText(keyModels(key))}. Shown only once:\n`)
  return `${key.secret}\n`
}

/** A key without an allowlist may call what its project may, which need not be everything. */
function keyModels(key: Key): string {
  return key.models === null ? "its project's" : shownModels(key)
}

/** The kind of object is in the id. */
const limited = {
  ws: { get: 'getWorkspace', put: 'putWorkspaceLimits', listing: 'tollgate workspaces list' },
  prj: { get: 'getProject', put: 'putProjectLimits', listing: 'tollgate projects list' },
  key: { get: 'getKey', put: 'putKeyLimits', listing },
} as const

const limitCommands: readonly CommandDefinition[] = [
  {
    words: ['limits', 'show'],
    summary: 'shows the limits of a workspace, a project or a key',
    positionals: [{ name: 'ID' }],
    examples: ['tollgate limits show key_…'],
    async run(context, input) {
      const { limits } = await findLimited(context, input)
      printResult(context, limits, () => `${shownLimits(limits)}\n`)
    },
  },
  {
    words: ['limits', 'put'],
    summary: 'replaces all limits of a workspace, a project or a key, from the next request on',
    details: 'Limits that are not given are removed. The tightest limit of key, project and workspace applies.',
    positionals: [{ name: 'ID' }],
    options: { ...limitFields, none: { help: 'remove all limits' } },
    examples: ['tollgate limits put key_… --rpm 60 --spend-per-day 5', 'tollgate limits put ws_… --none'],
    async run(context, input) {
      const limits = readLimits(input)
      if ((Object.keys(limits).length === 0) !== input.isSet('none')) {
        throw usageRefusal('give the limits, or --none for no limits.', 'tollgate limits put --help')
      }
      const before = await findLimited(context, input)
      const typed = Object.fromEntries(Object.entries(limitFields).map(([name, { field }]) => [field, `--${name}`]))
      const after = await context.api.call(before.put, { id: before.id, body: limits, typed })
      printResult(context, after, () => `was  ${shownLimits(before.limits)}\nnow  ${shownLimits(after)}\n`)
    },
  },
]

async function findLimited({ api }: CommandContext, input: CommandInput) {
  const id = input.positionals[0] ?? ''
  const prefix = id.slice(0, id.indexOf('_'))
  if (prefix !== 'ws' && prefix !== 'prj' && prefix !== 'key') {
    throw usageRefusal(`"${id}" is not the id of a workspace (ws_…), a project (prj_…) or a key (key_…).`)
  }
  const { get, put, listing: command } = limited[prefix]
  const { limits } = await listedBy(command, api.call(get, { id }))
  return { id, put, limits }
}

/** Empty if no option was given. */
function readLimits(input: CommandInput): BodyOf<'putKeyLimits'> {
  const limits: Record<string, string | number> = {}
  for (const [name, { field, read }] of Object.entries(limitFields)) {
    const text = input.text(name)
    if (text !== undefined) limits[field] = read(text, `--${name}`)
  }
  return limits
}

export const accessCommands: readonly CommandDefinition[] = [...keyCommands, ...limitCommands]
