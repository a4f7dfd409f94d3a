// `tollgate projects`: groups of keys, and which models those may see.

import { type CommandContext, type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { findProject, findWorkspace } from '../find-things.ts'
import { type JsonObject, shownAt, textAt } from '../json-members.ts'
import { findNamesakes, noteNamesakes } from '../names.ts'
import { warnIfNothingOffered } from '../offered-models.ts'
import { orListedBy, Refusal, usageRefusal } from '../refusal.ts'
import { shownLimits, shownModels, shownTime } from '../shown-values.ts'
import { cleanText, renderTable } from '../table.ts'

const allOfThem = 10_000
const workspace = { value: 'ID', help: 'which workspace; may be left out if there is only one' }
const models = { value: 'LIST', isRepeatable: true, help: 'model ids and patterns such as acme/*, by commas' } as const

const listProjects: CommandDefinition = {
  words: ['projects', 'list'],
  isDefault: true,
  summary: 'lists the projects of a workspace',
  options: { workspace },
  examples: ['tollgate projects', 'tollgate projects list --workspace ws_…'],
  async run(context, input) {
    const id = await findWorkspace(context.api, input.text('workspace'))
    if (id instanceof Refusal) return id
    const list = await context.api.list(`/api/workspaces/${encodeURIComponent(id)}/projects`, {}, allOfThem)
    if (list instanceof Refusal) return list
    if (context.json) return printJson(context, list)
    const columns = ['ID', 'NAME', 'MODELS', 'LIMITS', 'CREATED (UTC)'].map((title) => ({ title }))
    const rows = list.data.map((each) => [
      shownAt(each, 'id'),
      shownAt(each, 'name'),
      shownModels(each),
      shownLimits(each.limits),
      shownTime(textAt(each, 'created_at')),
    ])
    context.terminal.print(renderTable(columns, rows, context.terminal))
    return undefined
  },
}

const createProject: CommandDefinition = {
  words: ['projects', 'create'],
  summary: 'makes a project in a workspace',
  positionals: [{ name: 'NAME' }],
  options: {
    workspace,
    models: { ...models, help: `${models.help}; absent = every model` },
    'idempotency-key': { value: 'TEXT', help: 'makes a repeated call do nothing' },
  },
  examples: ['tollgate projects create web', "tollgate projects create web --models 'acme/*,other/large'"],
  async run(context, input) {
    const id = await findWorkspace(context.api, input.text('workspace'))
    if (id instanceof Refusal) return id
    const allowed = input.texts('models')
    const path = `/api/workspaces/${encodeURIComponent(id)}/projects`
    const project = await context.api.call({
      method: 'POST',
      path,
      body: { name: input.positionals[0], ...(allowed === undefined ? {} : { models: allowed }) },
      idempotencyKey: input.text('idempotency-key'),
      typed: { name: 'NAME', models: '--models' },
    })
    if (project instanceof Refusal) return project
    noteNamesakes(context, 'project', await findNamesakes(context.api, project, { path }))
    return await told(context, project, 'made')
  },
}

const updateProject: CommandDefinition = {
  words: ['projects', 'update'],
  summary: "changes a project's name or allowlist, from the next request on",
  positionals: [{ name: 'ID', isOptional: true }],
  options: {
    workspace,
    name: { value: 'TEXT', help: 'another name' },
    models: { ...models, help: `the whole new allowlist: ${models.help}` },
    'all-models': { help: 'no allowlist: every model' },
  },
  examples: ["tollgate projects update prj_… --models 'acme/*'", 'tollgate projects update prj_… --all-models'],
  async run(context, input) {
    const body = changesOf(input)
    if (body instanceof Refusal) return body
    const id = await findProject(context.api, input.positionals[0], input.text('workspace'))
    if (id instanceof Refusal) return id
    const path = `/api/projects/${encodeURIComponent(id)}`
    const typed = { name: '--name', models: '--models' }
    const project = orListedBy(await context.api.call({ method: 'PATCH', path, body, typed }), 'tollgate projects list')
    return project instanceof Refusal ? project : await told(context, project, 'changed')
  },
}

function changesOf(input: CommandInput): JsonObject | Refusal {
  const [name, allowed] = [input.text('name'), input.texts('models')]
  if (allowed !== undefined && input.isSet('all-models')) {
    return usageRefusal('--models and --all-models exclude each other.', 'tollgate projects update --help')
  }
  if (name === undefined && allowed === undefined && !input.isSet('all-models')) {
    return usageRefusal('say what to change: --name, --models or --all-models.', 'tollgate projects update --help')
  }
  return {
    ...(name === undefined ? {} : { name }),
    ...(allowed === undefined ? {} : { models: allowed }),
    ...(input.isSet('all-models') ? { models: null } : {}),
  }
}

async function told(context: CommandContext, project: JsonObject, done: string): Promise<undefined> {
  const id = shownAt(project, 'id')
  if (context.json) printJson(context, project)
  else {
    const [name, allowed] = [cleanText(shownAt(project, 'name')), cleanText(shownModels(project))]
    context.terminal.print(`Project "${name}" ${done}: ${id}, models ${allowed}\n`)
  }
  await warnIfNothingOffered(context, { what: 'project', projectId: id, thing: project })
}

export const projectCommands: readonly CommandDefinition[] = [listProjects, createProject, updateProject]
