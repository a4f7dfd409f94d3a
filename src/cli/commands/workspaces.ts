// `tollgate workspaces` and `tollgate projects`.

import type { AnswerOf } from '../../api/client.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { findWorkspace, namesakesIn, noteNamesakes, warnIfNoModels } from '../lookup.ts'
import { answerCommand, everyItem, idempotencyOption, listCommand, workspaceOption } from '../operation-command.ts'
import { usageRefusal } from '../refusal.ts'
import { cleanText, renderFacts, shownLimits, shownModels, shownTime, shownUsd } from '../values.ts'

/** Erasing a million requests takes well under this. */
const eraseTimeoutMs = 10 * 60_000

const workspaceCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['workspaces', 'list'],
    isDefault: true,
    summary: 'lists workspaces, oldest first',
    examples: ['tollgate workspaces', 'tollgate workspaces list --json'],
    operation: 'listWorkspaces',
    columns: [
      ['ID', ({ id }) => id],
      ['NAME', ({ name }) => name],
      ['LIMITS', ({ limits }) => shownLimits(limits)],
      ['CREATED (UTC)', ({ created_at }) => shownTime(created_at)],
    ],
  }),
  answerCommand({
    words: ['workspaces', 'create'],
    summary: 'creates a workspace with an empty wallet',
    examples: ['tollgate workspaces create acme'],
    operation: 'createWorkspace',
    arguments: [{ name: 'NAME', field: 'name' }],
    options: { 'idempotency-key': idempotencyOption },
    text: ({ id, name }) => `Workspace "${cleanText(name)}" created: ${id}\n`,
    async after(context, workspace) {
      const { api, terminal, json } = context
      noteNamesakes(context, 'workspace', await namesakesIn(api.list('listWorkspaces', {}, everyItem), workspace))
      if (!json) terminal.complain(`Next: tollgate wallet topup 10 --workspace ${workspace.id}\n`)
    },
  }),
  {
    words: ['workspaces', 'show'],
    summary: 'shows a workspace and its wallet',
    positionals: [{ name: 'ID', isOptional: true }],
    examples: ['tollgate workspaces show', 'tollgate workspaces show ws_…'],
    async run(context, input) {
      const id = await findWorkspace(context.api, input.positionals[0])
      const workspace = await context.api.call('getWorkspace', { id })
      const wallet = await context.api.call('getWallet', { id })
      const facts = renderFacts([
        ['id', workspace.id],
        ['balance', shownUsd(wallet.balance)],
        ['held', shownUsd(wallet.held)],
        ['available', shownUsd(wallet.available)],
        ['limits', shownLimits(workspace.limits)],
        ['created', `${shownTime(workspace.created_at)} UTC`],
        ['managed by', workspace.managed_by],
      ])
      printResult(context, { ...workspace, wallet }, () => `${cleanText(workspace.name)}\n${facts}`)
    },
  },
  {
    words: ['workspaces', 'export'],
    summary: 'prints everything stored about a workspace, one JSON object per line',
    details: `Every line has a "record": workspace, wallet, project, key, credential, transfer, request or audit. Secrets are not
included: only the last four characters of keys and provider keys are shown. The export is noted in the audit log.`,
    positionals: [{ name: 'ID', prefix: 'ws_' }],
    examples: ['tollgate workspaces export ws_… > acme.jsonl'],
    async run({ api, terminal }, input) {
      for await (const text of api.download('exportWorkspace', { id: input.positionals[0] ?? '' })) terminal.print(text)
    },
  },
  answerCommand({
    words: ['workspaces', 'erase'],
    summary: 'revokes the keys of a workspace and erases personal data',
    details: `Erased: the names of the workspace, its projects and keys, the keys themselves and their allowed addresses, its
provider keys, its requests. Kept: the balance, every charge and top-up with its reference, hourly sums, and the audit
log, which holds ids. This cannot be undone; export first. It may be repeated, and should be once requests that were
running have ended. Earlier backups still contain everything.`,
    examples: ['tollgate workspaces erase ws_… --yes'],
    operation: 'eraseWorkspace',
    arguments: [{ name: 'ID', prefix: 'ws_', parameter: 'id' }],
    options: { yes: { help: 'required; without it nothing is erased' } },
    check(input) {
      if (input.isSet('yes')) return
      const attempt = `tollgate workspaces erase ${input.positionals[0]} --yes`
      throw usageRefusal('nothing was erased: this revokes its keys and cannot be undone.', attempt)
    },
    body: async () => ({ confirm: 'erase' as const }),
    timeoutMs: eraseTimeoutMs,
    text: ({ keys, credentials, requests }, _context, { id }) =>
      `${id} is erased: ${keys} keys, ${credentials} credentials, ${requests} requests. Its charges and its balance stay.\n`,
  }),
]

const modelsOption = {
  value: 'LIST',
  isRepeatable: true,
  help: 'model ids and patterns such as acme/*, separated by commas',
  field: 'models',
} as const

const projectCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['projects', 'list'],
    isDefault: true,
    summary: 'lists the projects of a workspace',
    examples: ['tollgate projects', 'tollgate projects list --workspace ws_…'],
    operation: 'listProjects',
    options: { workspace: { ...workspaceOption, parameter: 'id' } },
    columns: [
      ['ID', ({ id }) => id],
      ['NAME', ({ name }) => name],
      ['MODELS', shownModels],
      ['LIMITS', ({ limits }) => shownLimits(limits)],
      ['CREATED (UTC)', ({ created_at }) => shownTime(created_at)],
    ],
  }),
  answerCommand({
    words: ['projects', 'create'],
    summary: 'creates a project in a workspace',
    examples: ['tollgate projects create web', "tollgate projects create web --models 'acme/*,other/large'"],
    operation: 'createProject',
    arguments: [{ name: 'NAME', field: 'name' }],
    options: {
      workspace: { ...workspaceOption, parameter: 'id' },
      models: { ...modelsOption, help: `${modelsOption.help}; absent = every model` },
      'idempotency-key': idempotencyOption,
    },
    text: (project) => projectText(project, 'created'),
    async after(context, project, { id = '' }) {
      const list = context.api.list('listProjects', { id }, everyItem)
      noteNamesakes(context, 'project', await namesakesIn(list, project))
      await warnAboutProject(context, project)
    },
  }),
  answerCommand({
    words: ['projects', 'update'],
    summary: "changes a project's name or allowlist, from the next request on",
    examples: ["tollgate projects update prj_… --models 'acme/*'", 'tollgate projects update prj_… --all-models'],
    operation: 'updateProject',
    arguments: [{ name: 'ID', isOptional: true, parameter: 'id', find: 'project' }],
    options: {
      workspace: { value: 'ID', help: workspaceOption.help },
      name: { value: 'TEXT', help: 'the new name', field: 'name' },
      models: { ...modelsOption, help: `the complete new allowlist: ${modelsOption.help}` },
      'all-models': { help: 'no allowlist: every model', field: 'models', set: null },
    },
    check(input) {
      const help = 'tollgate projects update --help'
      const [models, all] = [input.isSet('models'), input.isSet('all-models')]
      if (models && all) throw usageRefusal('--models and --all-models exclude each other.', help)
      if (!models && !all && !input.isSet('name')) {
        throw usageRefusal('say what to change: --name, --models or --all-models.', help)
      }
    },
    listedBy: 'tollgate projects list',
    text: (project) => projectText(project, 'changed'),
    after: warnAboutProject,
  }),
]

function projectText(project: AnswerOf<'getProject'>, done: string): string {
  const [name, models] = [cleanText(project.name), cleanText(shownModels(project))]
  return `Project "${name}" ${done}: ${project.id}, models ${models}\n`
}

async function warnAboutProject(context: CommandContext, { id, models }: AnswerOf<'getProject'>): Promise<void> {
  await warnIfNoModels(context, 'project', id, models)
}

export const tenantCommands: readonly CommandDefinition[] = [...workspaceCommands, ...projectCommands]
