// `tollgate workspaces`, `tollgate projects`, `tollgate keys` and `tollgate limits`. The secret of a key is printed once,
// alone on the standard output, so that `KEY=$(tollgate keys create …)` contains nothing else.

import type { AnswerOf, BodyOf } from '../../api/client.ts'
import { stateText } from '../../api/spend-state.ts'
import { namedSubjectForms } from '../../kernel/spend-limit.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { findHolder, findWorkspace, namesakesIn, noteNamesakes, projectNames, warnIfNoModels } from '../lookup.ts'
import {
  answerCommand,
  downloadCommand,
  idempotencyOption,
  listCommand,
  projectOption,
  workspaceFilter,
  workspaceOption,
} from '../operation-command.ts'
import { listedBy, usageRefusal } from '../refusal.ts'
import {
  type Columns,
  cleanText,
  counted,
  limitOptions,
  readCount,
  readSpan,
  readTime,
  renderFacts,
  renderTable,
  shownLimits,
  shownModels,
  shownState,
  shownTime,
  shownUsd,
} from '../values.ts'

const workspace = { ...workspaceOption, parameter: 'id' } as const
const keyArgument = { name: 'KEY', parameter: 'id', find: 'key' } as const
const listing = 'tollgate keys list'
/** Erasing a million requests takes well under this. */
const eraseTimeoutMs = 10 * 60_000

const workspaceCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['workspaces', 'list'],
    isDefault: true,
    summary: 'lists workspaces, oldest first',
    examples: ['tollgate workspaces', 'tollgate workspaces list --json'],
    operation: 'listWorkspaces',
    columns: async ({ clock }) => ['id', 'name', ['LIMITS', (shown) => shownState(shown, clock.now())], 'created_at'],
  }),
  answerCommand({
    words: ['workspaces', 'create'],
    summary: 'creates a workspace with an empty wallet',
    examples: ['tollgate workspaces create acme'],
    operation: 'createWorkspace',
    arguments: [{ name: 'NAME', field: 'name' }],
    options: { 'idempotency-key': idempotencyOption },
    text: ({ id, name }) => `Workspace "${cleanText(name)}" created: ${id}\n`,
    async after(context, created) {
      noteNamesakes(context, 'workspace', await namesakesIn(context.api.list('listWorkspaces', {}), created))
    },
    note: ({ id }) =>
      `Next: tollgate wallet topup 10 --workspace ${id}\n      tollgate projects create NAME --workspace ${id}\n`,
  }),
  {
    words: ['workspaces', 'show'],
    summary: 'shows a workspace and its wallet',
    positionals: [{ name: 'ID', isOptional: true }],
    examples: ['tollgate workspaces show', 'tollgate workspaces show ws_…'],
    async run(context) {
      const { api, positionals } = context
      const id = await findWorkspace(api, positionals[0])
      const shown = await api.call('getWorkspace', { id })
      const wallet = await api.call('getWallet', { id })
      const facts = renderFacts([
        ['id', id],
        ['balance', shownUsd(wallet.balance)],
        ['held', shownUsd(wallet.held)],
        ['available', shownUsd(wallet.available)],
        ['limits', shownState(shown, context.clock.now())],
        ['low balance', shown.low_balance === null ? 'no alert' : `alert below ${shownUsd(shown.low_balance)}`],
        ['price list', shown.price_list ?? 'none; pays the catalog prices'],
        ['created', `${shownTime(shown.created_at)} UTC`],
        ['managed by', shown.managed_by],
      ])
      printResult(context, { ...shown, wallet }, () => `${cleanText(shown.name)}\n${facts}`)
    },
  },
  answerCommand({
    words: ['workspaces', 'update'],
    summary: 'changes the name, price list or shared routes of a workspace',
    examples: [
      'tollgate workspaces update ws_… --price-list retail',
      'tollgate workspaces update ws_… --no-price-list',
    ],
    operation: 'updateWorkspace',
    arguments: [{ name: 'ID', parameter: 'id', find: 'workspace' }],
    options: {
      name: { value: 'TEXT', help: 'a new name', field: 'name' },
      'price-list': { value: 'NAME', help: 'the price list it pays by from its next request on', field: 'price_list' },
      'no-price-list': { help: 'it pays the catalog prices again', field: 'price_list', set: null },
      'shares-routes': {
        value: 'YES|NO',
        help: "whether the operator's provider keys are used when its own fail",
        field: 'shares_routes',
        read: yesOrNo('tollgate workspaces update ws_… --shares-routes yes'),
      },
    },
    check({ text, isSet }) {
      if (text('price-list') !== undefined && isSet('no-price-list')) {
        throw usageRefusal('give --price-list or --no-price-list, not both.', 'tollgate workspaces update --help')
      }
    },
    listedBy: 'tollgate workspaces',
    text: (changed, context) => {
      const facts = [
        ['price-list', `it pays by the price list ${changed.price_list}`],
        ['no-price-list', 'it pays the catalog prices'],
        ['shares-routes', `its requests ${changed.shares_routes ? 'may' : 'do not'} use the operator's provider keys`],
      ] as const
      const given = facts.flatMap(([option, text]) => (context.isSet(option) ? [text] : []))
      return `Workspace "${cleanText(changed.name)}" (${changed.id}) is updated${given.map((text) => `; ${text}`).join('')}.\n`
    },
  }),
  downloadCommand({
    words: ['workspaces', 'export'],
    summary: 'prints everything stored about a workspace, one JSON object per line',
    details: `Every line has a "record": workspace, wallet, project, key, credential, transfer, request or audit. Secrets are not
included: only the last four characters of keys and provider keys are shown. The export is noted in the audit log.`,
    examples: ['tollgate workspaces export ws_… > acme.jsonl'],
    operation: 'exportWorkspace',
    arguments: [{ name: 'ID', parameter: 'id', find: 'workspace' }],
  }),
  answerCommand({
    words: ['workspaces', 'erase'],
    summary: 'revokes the keys of a workspace and erases personal data',
    details: `Erased: the names of the workspace, its projects and keys, the keys themselves and their allowed addresses, its
provider keys, its requests, stored responses and batches. Kept: the balance, every charge and top-up with its reference, hourly sums, and the audit
log, which holds ids. This cannot be undone; export first. It may be repeated, and should be once requests that were
running have ended. Earlier backups still contain everything.`,
    examples: ['tollgate workspaces erase ws_… --yes'],
    operation: 'eraseWorkspace',
    arguments: [{ name: 'ID', parameter: 'id', find: 'workspace' }],
    options: { yes: { help: 'required; without it nothing is erased' } },
    check({ isSet, first }) {
      if (isSet('yes')) return
      const attempt = `tollgate workspaces erase ${first} --yes`
      throw usageRefusal('nothing was erased: this revokes its keys and cannot be undone.', attempt)
    },
    body: () => ({ confirm: 'erase' as const }),
    timeoutMs: eraseTimeoutMs,
    text: ({ keys, credentials, responses, batches, requests }, _context, { id }) =>
      `${id} is erased: ${keys} keys, ${credentials} credentials, ${responses} stored responses, ${batches} batches, ${requests} requests. Its charges and its balance stay.\n`,
  }),
]

function yesOrNo(example: string): (text: string, label: string) => boolean {
  return (text, label) => {
    if (text === 'yes' || text === 'no') return text === 'yes'
    throw usageRefusal(`${label} must be yes or no.`, example)
  }
}

const projectArgument = { name: 'PROJECT', isOptional: true, parameter: 'id', find: 'project' } as const
const workspaceOfProject = { value: 'ID', help: 'where to look for the project' } as const

const modelsOption = {
  value: 'LIST',
  isRepeatable: true,
  help: 'model ids and patterns such as acme/*, separated by commas',
  field: 'models',
} as const

const aliasesOption = {
  value: 'LIST',
  help: 'further names of models, separated by commas: gpt=openai/gpt-5.6,fast=acme/small',
  field: 'aliases',
  read: readAliases,
} as const

/** '' = none. */
function readAliases(text: string, label: string): Readonly<Record<string, string>> {
  const pairs = text.split(',').map((pair) => pair.trim())
  const named = pairs.filter((pair) => pair !== '').map((pair) => pair.split('='))
  const wrong = named.find((parts) => parts.length !== 2 || parts.includes(''))
  if (wrong) throw usageRefusal(`${label} takes NAME=MODEL, separated by commas, not "${wrong.join('=')}".`)
  return Object.fromEntries(named)
}

const projectCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['projects', 'list'],
    isDefault: true,
    summary: 'lists the projects of a workspace',
    examples: ['tollgate projects', 'tollgate projects list --workspace ws_…'],
    operation: 'listProjects',
    options: {
      workspace,
      archived: { help: 'also those that were deleted after they had been used', field: 'archived', set: true },
    },
    columns: async ({ clock, isSet }) => [
      'id',
      'name',
      ...(isSet('archived') ? (['archived_at'] as const) : []),
      ['MODELS', shownModels],
      ['LIMITS', (shown) => shownState(shown, clock.now())],
      'created_at',
    ],
  }),
  answerCommand({
    words: ['projects', 'create'],
    summary: 'creates a project in a workspace',
    examples: ['tollgate projects create web', "tollgate projects create web --models 'acme/*,other/large'"],
    operation: 'createProject',
    arguments: [{ name: 'NAME', field: 'name' }],
    options: {
      workspace,
      models: { ...modelsOption, help: `${modelsOption.help}; absent = every model` },
      aliases: aliasesOption,
      'idempotency-key': idempotencyOption,
    },
    text: (project) => projectText(project, 'created'),
    async after(context, project, { id = '' }) {
      noteNamesakes(context, 'project', await namesakesIn(context.api.list('listProjects', { id }), project))
      await warnIfNoModels(context, 'project', project.id, project.models)
    },
    note: ({ id }) => `Next: tollgate keys create --name NAME --project ${id}\n`,
  }),
  answerCommand({
    words: ['projects', 'show'],
    summary: 'shows a project',
    examples: ['tollgate projects show web'],
    operation: 'getProject',
    arguments: [projectArgument],
    options: { workspace: workspaceOfProject },
    listedBy: 'tollgate projects list',
    text: (project, { clock }) => `${cleanText(project.name)}\n${renderFacts(projectFacts(project, clock.now()))}`,
  }),
  answerCommand({
    words: ['projects', 'update'],
    summary: "changes a project's name, allowlist, aliases or content export, from the next request on",
    examples: ["tollgate projects update prj_… --models 'acme/*'", 'tollgate projects update prj_… --all-models'],
    operation: 'updateProject',
    arguments: [projectArgument],
    options: {
      workspace: workspaceOfProject,
      name: { value: 'TEXT', help: 'the new name', field: 'name' },
      models: { ...modelsOption, help: `the complete new allowlist: ${modelsOption.help}` },
      'all-models': { help: 'no allowlist: every model', field: 'models', set: null },
      aliases: { ...aliasesOption, help: `all ${aliasesOption.help}; '' = none` },
      'export-content': {
        value: 'YES|NO',
        help: "whether its prompts and answers are sent to the operator's collector",
        field: 'exports_content',
        read: yesOrNo('tollgate projects update prj_… --export-content yes'),
      },
    },
    check({ isSet }) {
      const help = 'tollgate projects update --help'
      const [models, all] = [isSet('models'), isSet('all-models')]
      if (models && all) throw usageRefusal('--models and --all-models cannot be used together.', help)
      if (!models && !all && !isSet('name') && !isSet('aliases') && !isSet('export-content')) {
        const options = '--name, --models, --all-models, --aliases or --export-content'
        throw usageRefusal(`say what to change: ${options}.`, help)
      }
    },
    listedBy: 'tollgate projects list',
    text: (project) => projectText(project, 'changed'),
    after: (context, { id, models }) => warnIfNoModels(context, 'project', id, models),
  }),
  answerCommand({
    words: ['projects', 'delete'],
    summary: 'deletes a project and revokes its keys: immediately here, within 5 s on other replicas',
    details: `A project whose keys made requests is archived: it is not listed any more, and its requests and charges stay in
usage and statements. This cannot be undone.`,
    examples: ['tollgate projects delete web', 'tollgate projects delete prj_… --yes'],
    operation: 'deleteProject',
    arguments: [{ name: 'PROJECT', parameter: 'id', find: 'project' }],
    options: { workspace: workspaceOfProject },
    listedBy: 'tollgate projects list',
    async confirm({ api }, { id = '' }) {
      const { name } = await api.call('getProject', { id })
      const { data } = await api.list('listKeys', { query: { project_id: id } }, Number.POSITIVE_INFINITY)
      const working = counted(data.filter(({ status }) => status === 'active').length, 'key')
      return `Delete project "${cleanText(name)}"? ${working} will stop working.`
    },
    text: ({ id, outcome, keys }) =>
      outcome === 'archived'
        ? `Project ${id} is archived: its requests and charges stay. ${counted(keys, 'key')} revoked.\n`
        : `Project ${id} is deleted. ${counted(keys, 'key')} revoked.\n`,
  }),
]

function projectFacts(project: AnswerOf<'getProject'>, now: number) {
  const aliases = Object.entries(project.aliases).map((pair) => pair.join('='))
  return [
    ['id', project.id],
    ['workspace', project.workspace_id],
    ['models', shownModels(project)],
    ['aliases', aliases.join(', ') || 'none'],
    ['exports content', project.exports_content ? 'yes' : 'no'],
    ['limits', shownState(project, now)],
    ['created', `${shownTime(project.created_at)} UTC`],
    ['archived', project.archived_at === null ? undefined : `${shownTime(project.archived_at)} UTC`],
    ['managed by', project.managed_by],
  ] as const
}

function projectText(project: AnswerOf<'getProject'>, done: string): string {
  const [name, models] = [cleanText(project.name), cleanText(shownModels(project))]
  const content = project.exports_content ? ', exports content' : ''
  return `Project "${name}" ${done}: ${project.id}, models ${models}${content}\n`
}

const keyCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['keys', 'list'],
    isDefault: true,
    summary: 'lists keys, oldest first',
    examples: ['tollgate keys', 'tollgate keys list --project prj_… --json'],
    operation: 'listKeys',
    options: {
      workspace: workspaceFilter('only keys of this workspace'),
      project: { value: 'ID', help: 'only keys of this project', field: 'project_id', find: 'project' },
    },
    async columns({ api, clock }, keys) {
      const projectName = await projectNames(api, keys)
      return [
        'id',
        'name',
        ['SECRET', ({ last4 }) => `…${last4}`],
        'status',
        ['PROJECT', ({ project_id }) => projectName(project_id)],
        ['MODELS', keyModels],
        ['LIMITS', (shown) => shownState(shown, clock.now())],
        ['EXPIRES', ({ expires_at }) => shownTime(expires_at).slice(0, 10)],
        'last_used_at',
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
      name: { value: 'TEXT', help: 'display name', field: 'name', isRequired: true },
      project: { ...projectOption, parameter: 'id' },
      workspace: workspaceOfProject,
      models: { ...modelsOption, help: "narrows the project's models: ids and patterns, separated by commas" },
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
      ...limitOptions((field) => `limits.${field}` as const),
      'idempotency-key': idempotencyOption,
    },
    text: (key, context) => secretText(context, key, 'created'),
    async after(context, key) {
      const { project_id, models } = key
      noteNamesakes(context, 'key', await namesakesIn(context.api.list('listKeys', { query: { project_id } }), key))
      await warnIfNoModels(context, 'key', project_id, models)
    },
    note: ({ id }, { settings: { url } }) =>
      `Use it with ${url}/v1 (OpenAI) or ${url} (Anthropic, Gemini). Next: tollgate requests --key ${id}\n`,
  }),
  answerCommand({
    words: ['keys', 'show'],
    summary: 'shows a key, without its secret',
    examples: ['tollgate keys show ci', 'tollgate keys show key_…'],
    operation: 'getKey',
    arguments: [keyArgument],
    listedBy: listing,
    text: async (key, { api, clock }) => {
      const { name: project } = await api.call('getProject', { id: key.project_id })
      const facts = renderFacts([
        ['id', key.id],
        ['secret', `…${key.last4}`],
        ['status', key.status],
        ['project', `${cleanText(project)} (${key.project_id})`],
        ['models', keyModels(key)],
        ['limits', shownState(key, clock.now())],
        ['addresses', key.sources?.join(', ') ?? 'any'],
        ['expires', key.expires_at === null ? 'never' : `${shownTime(key.expires_at)} UTC`],
        ['last used', lastUse(key).replace(/^last used /, '')],
        ['managed by', key.managed_by],
      ])
      return `${cleanText(key.name)}\n${facts}`
    },
  }),
  answerCommand({
    words: ['keys', 'revoke'],
    summary: 'revokes a key permanently: immediately here, within 5 s on other replicas',
    details: 'A revoked key stays listed, because its requests and charges name it.',
    examples: ['tollgate keys revoke ci', 'tollgate keys revoke key_… --yes'],
    operation: 'revokeKey',
    arguments: [keyArgument],
    listedBy: listing,
    confirm: (context, { id = '' }) => questionAbout(context, 'Revoke', id),
    text: ({ name, last4 }) => `Key "${cleanText(name)}" (…${last4}) is revoked.\n`,
  }),
  answerCommand({
    words: ['keys', 'rotate'],
    summary: 'gives a key a new secret, shown only once',
    details: 'The old secret ends immediately, or after the overlap.',
    examples: ['tollgate keys rotate ci', 'tollgate keys rotate key_… --overlap 1h'],
    operation: 'rotateKey',
    arguments: [keyArgument],
    options: {
      overlap: {
        value: 'SPAN',
        help: 'how long the old secret stays valid, such as 1h',
        field: 'overlap_seconds',
        read: readSpan,
      },
    },
    listedBy: listing,
    confirm: (context, { id = '' }) =>
      context.isSet('overlap') ? undefined : questionAbout(context, 'Replace the secret of', id),
    text: (key, context) => secretText(context, key, 'rotated'),
  }),
]

/** Shows which key it is and when it was last used. */
async function questionAbout({ api }: CommandContext, what: string, id: string): Promise<string> {
  const key = await listedBy(listing, api.call('getKey', { id }))
  return `${what} key "${cleanText(key.name)}" (…${key.last4}), ${lastUse(key)}?`
}

function lastUse({ last_used_at: at }: AnswerOf<'getKey'>): string {
  // Uses are written once a minute.
  return at === null ? 'not used yet, or only in the last minute' : `last used ${shownTime(at)} UTC`
}

function secretText({ terminal }: CommandContext, key: AnswerOf<'createKey'>, done: string): string {
  terminal.complain(`Key "${cleanText(key.name)}" ${done}: ${key.id}\n`)
  terminal.complain(`Limits ${shownLimits(key.limits)}; models ${cleanText(keyModels(key))}. Shown only once:\n`)
  return `${key.secret}\n`
}

/** A key without an allowlist may call what its project may, which need not be everything. */
function keyModels(key: AnswerOf<'getKey'>): string {
  return key.models === null ? "its project's" : shownModels(key)
}

/** The kind of object is in the id. */
const limited = {
  ws: { get: 'getWorkspace', put: 'putWorkspaceLimits', listing: 'tollgate workspaces list' },
  prj: { get: 'getProject', put: 'putProjectLimits', listing: 'tollgate projects list' },
  key: { get: 'getKey', put: 'putKeyLimits', listing },
} as const

const limitFields = limitOptions((field) => field)
/** For each limit of --spend-limit that does not say so itself. */
const atLimitOptions = {
  then: { value: 'MODEL', help: 'with --spend-limit: the model that is used once the limit is reached' },
  'slow-down': {
    value: 'N',
    help: 'with --spend-limit: N requests per minute from 80 % of the limit on',
  },
} as const
const holderArgument = { name: 'KEY|PROJECT|WORKSPACE' } as const

const limitCommands: readonly CommandDefinition[] = [
  {
    words: ['limits', 'show'],
    summary: 'shows the limits of a workspace, project or key, or of one subject, and how much of them is used',
    details: `With --subject: every spend limit of the workspace, its projects and its keys that counts this person, group, end user
or tag, with what it has spent of each. Of a person also those of their groups.`,
    positionals: [{ ...holderArgument, isOptional: true }],
    options: {
      subject: { value: 'SUBJECT', help: namedSubjectForms.join(', ') },
      workspace: { ...workspaceOption, help: 'with --subject: the workspace' },
    },
    examples: [
      'tollgate limits show ci',
      'tollgate limits show key_…',
      'tollgate limits show --subject person:ada@example.com',
    ],
    async run(context) {
      const subject = context.text('subject')
      if ((subject === undefined) === (context.first === '')) {
        throw usageRefusal('give a key, project or workspace, or --subject.', 'tollgate limits show --help')
      }
      if (subject !== undefined) return await showSubject(context, subject)
      const { limits, spend } = await findLimited(context)
      printResult(context, { ...limits, spend }, () => `${shownState({ limits, spend }, context.clock.now())}\n`)
    },
  },
  {
    words: ['limits', 'set'],
    summary: 'sets some limits of a workspace, a project or a key, from the next request on',
    details: `Other limits stay as they are; "none" removes one. The tightest limit of key, project and workspace applies.`,
    positionals: [holderArgument],
    options: { ...limitFields, ...atLimitOptions },
    examples: [
      'tollgate limits set ci --rpm 60 --spend-per-day 5',
      'tollgate limits set ci --rpm none',
      "tollgate limits set web --spend-limit 'person acme/* 5h 10' --then other/small --slow-down 6",
    ],
    async run(context) {
      const { body, typed } = readLimits(context, true)
      if (Object.keys(body).length === 0) throw usageRefusal('say which limits to set.', 'tollgate limits set --help')
      const holder = await findLimited(context)
      await putLimits(context, holder, { body: { ...holder.limits, ...body }, typed })
    },
  },
  {
    words: ['limits', 'put'],
    summary: 'replaces all limits of a workspace, a project or a key, from the next request on',
    details: `Limits that are not given are removed; tollgate limits set keeps them. The tightest limit of key, project and workspace
applies.`,
    positionals: [holderArgument],
    options: { ...limitFields, ...atLimitOptions, none: { help: 'remove all limits' } },
    examples: [
      'tollgate limits put ci --rpm 60 --spend-per-day 5',
      'tollgate limits put prj_… --user-spend-per-day 5 --tag-spend-per-month team=web=100',
      'tollgate limits put ws_… --none',
    ],
    async run(context) {
      const given = readLimits(context, false)
      if ((Object.keys(given.body).length === 0) !== context.isSet('none')) {
        throw usageRefusal('give the limits, or --none for no limits.', 'tollgate limits put --help')
      }
      await putLimits(context, await findLimited(context), given)
    },
  },
]

async function showSubject(context: CommandContext, subject: string): Promise<void> {
  const { api, terminal, clock } = context
  const id = await findWorkspace(api, context.text('workspace'))
  const call = { id, query: { subject }, typed: { subject: '--subject' } }
  const shown = await api.call('getSubjectLimits', call)
  printResult(context, shown, () => {
    const facts = [shown.role, ...shown.groups.map(({ name }) => `in group ${name}`)].filter((fact) => fact !== null)
    const head = `${cleanText([shown.subject, ...facts].join(', '))}\n`
    if (shown.limits.length === 0) return `${head}No spend limit counts it.\n`
    return head + renderTable(subjectColumns(clock.now()), shown.limits, terminal)
  })
}

type SubjectLimit = AnswerOf<'getSubjectLimits'>['limits'][number]

function subjectColumns(now: number): Columns<SubjectLimit> {
  return [
    [
      'LIMIT OF',
      ({ subject, models, is_of_each }) => [is_of_each ? `each ${subject}` : subject, models].filter(Boolean).join(' '),
    ],
    ['WINDOW', ({ period }) => period],
    ['SPENT', ({ spent }) => `$${spent}`, 'right'],
    ['LIMIT', ({ limit }) => `$${limit}`, 'right'],
    ['USED', ({ spent, limit }) => `${Math.round((100 * Number(spent)) / Number(limit))} %`, 'right'],
    ['STATE', (limit) => stateText(limit, now)],
    ['AT THE LIMIT', shownAtLimit],
    ['SET IN', ({ set_in: { kind, name }, set_by }) => `${kind} ${name}${set_by ? ` by an ${set_by}` : ''}`],
  ]
}

function shownAtLimit({ then, slow_down }: SubjectLimit): string {
  const slower = slow_down === undefined ? [] : [`${slow_down} per minute from 80 %`]
  return [...slower, then === undefined ? 'refused' : `then ${then}`].join(', ')
}

/** The limits that are given, and how errors name each field. `none` as a value: no such limit. */
function readLimits(context: CommandContext, takesNone: boolean) {
  const body: Record<string, unknown> = {}
  const typed: Record<string, string> = {}
  for (const [name, { field, read }] of Object.entries(limitFields)) {
    const text = context.text(name)
    if (text !== undefined) body[field] = takesNone && text === 'none' ? null : read(text, `--${name}`)
    typed[field] = `--${name}`
  }
  const [then, slowDown] = [context.text('then'), context.text('slow-down')]
  if (then === undefined && slowDown === undefined) return { body, typed }
  if (!Array.isArray(body.spend_limits)) {
    throw usageRefusal('--then and --slow-down say what happens at the limits of --spend-limit: give it too.')
  }
  const atLimit = {
    ...(then !== undefined && { then }),
    ...(slowDown !== undefined && { slow_down: readCount(slowDown, '--slow-down') }),
  }
  body.spend_limits = body.spend_limits.map((limit: object) => ({ ...atLimit, ...limit }))
  return { body, typed }
}

async function putLimits(
  context: CommandContext,
  { id, put, limits }: Awaited<ReturnType<typeof findLimited>>,
  { body, typed }: ReturnType<typeof readLimits>,
): Promise<void> {
  const after = await context.api.call(put, { id, body: body as BodyOf<'putKeyLimits'>, typed })
  printResult(context, after, () => `was  ${shownLimits(limits)}\nnow  ${shownLimits(after)}\n`)
  for (const warning of after.warnings ?? []) context.terminal.complain(`Note: ${warning}\n`)
}

async function findLimited({ api, first }: CommandContext) {
  const id = await findHolder(api, first)
  const kind = id.startsWith('ws_') ? 'ws' : id.startsWith('prj_') ? 'prj' : 'key'
  const { get, put, listing: command } = limited[kind]
  const { limits, spend } = await listedBy(command, api.call(get, { id }))
  return { id, put, limits, spend }
}

export const tenantCommands: readonly CommandDefinition[] = [
  ...workspaceCommands,
  ...projectCommands,
  ...keyCommands,
  ...limitCommands,
]
