// Workspaces, projects, keys and managed settings as a file declares them, and the changes that make an installation match
// it. The file is complete for what it names, does not affect anything else, and never holds the secret of a key. Planning calls nothing, so `plan`
// shows exactly what `apply` does. After an interruption the next run plans the rest; nothing is done twice.

import { stringify } from 'yaml'
import { z } from 'zod'
import type { AnswerOf } from '../api/client.ts'
import { settingsRuleSchema } from '../api/sign-ins.ts'
import {
  type ConfigFault,
  type ConfigPath,
  checkSchema,
  formatPath,
  readDocument,
  type SchemaFault,
} from '../config/document.ts'
import { isTag } from '../kernel/attribution.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import { periods } from '../kernel/spend-limit.ts'
import type { ApiClient } from './api-client.ts'
import { Refusal, tryTo } from './refusal.ts'
import { shownLimits } from './values.ts'

const count = z.int().min(1).optional()
const amount = z
  .union([z.string(), z.number()], { error: 'expected USD as a decimal string such as "5.00"' })
  .transform((value, context) => {
    const parsed = parseUsd(String(value))
    if (parsed !== undefined) return formatUsd(parsed)
    context.addIssue({ code: 'custom', message: 'expected USD as a decimal string such as "5.00"' })
    return z.NEVER
  })
  .optional()

const tagAmounts = z
  .record(z.string().refine(isTag, { error: 'expected a tag such as team=web' }), amount.unwrap())
  .optional()

const planSchema = z.strictObject({
  id: z.string().min(1),
  name: z.string().min(1).optional(),
  credit: amount.unwrap(),
  period: z.enum(periods),
  expires_days: z.int().min(1).max(366).nullish(),
  price: amount.nullish(),
})

/** Members of all three kinds. The id is only needed if several have the same name. */
const common = {
  name: z.string().min(1),
  id: z.string().min(1).optional(),
  limits: z
    .strictObject({
      requests_per_minute: count,
      tokens_per_minute: count,
      concurrent_requests: count,
      spend_per_day: amount,
      spend_per_week: amount,
      spend_per_month: amount,
      starts_at: z.iso.date({ error: 'expected a day such as "2027-01-31"' }).optional(),
      user_spend_per_day: amount,
      user_spend_per_week: amount,
      user_spend_per_month: amount,
      tag_spend_per_day: tagAmounts,
      tag_spend_per_week: tagAmounts,
      tag_spend_per_month: tagAmounts,
      spend_limits: z
        .array(
          z.strictObject({
            subject: z.string().default('all'),
            models: z.string().optional(),
            window: z.string(),
            limit: amount.unwrap(),
            then: z.string().optional(),
            slow_down: count,
            set_by: z.literal('admin').optional(),
          }),
        )
        .optional(),
    })
    .nullish(),
}
const models = z.array(z.string().min(1)).nullish()

const keySchema = z.strictObject({
  ...common,
  models,
  sources: z.array(z.string().min(1)).nullish(),
  expires_at: z.iso.datetime({ offset: true, error: 'expected a time such as "2027-01-31T00:00:00Z"' }).nullish(),
})
const aliases = z.record(z.string(), z.string()).nullish()
const projectSchema = z.strictObject({
  ...common,
  models,
  aliases,
  /** Absent or null = no. */
  exports_content: z.boolean().nullish(),
  keys: z.array(keySchema).nullish(),
})
/** People by address, keys by their place in the workspace: `web/ci`. */
const groupSchema = z.strictObject({ name: z.string().min(1), members: z.array(z.string().min(1)).nullish() })
const workspaceSchema = z.strictObject({
  ...common,
  /** null = none, from the next period on. Absent = it stays as it is. */
  plan: z.string().min(1).nullish(),
  groups: z.array(groupSchema).nullish(),
  projects: z.array(projectSchema).nullish(),
})
const declarationSchema = z.strictObject({
  /** Plans that are not named stay. */
  plans: z.array(planSchema).nullish(),
  workspaces: z.array(workspaceSchema).nullish(),
  /** For Claude Code. Absent or null = they stay as they are. */
  managed_settings: z.array(settingsRuleSchema).max(100).nullish(),
})

export type Declaration = z.output<typeof declarationSchema>
type DeclaredKey = z.output<typeof keySchema>
type DeclaredGroup = z.output<typeof groupSchema>

/** One of the three kinds; members that its kind does not have are absent. */
interface Declared extends DeclaredKey, Children<Declared> {
  readonly aliases?: Aliases
  readonly exports_content?: boolean | null | undefined
  readonly groups?: readonly DeclaredGroup[] | null | undefined
  readonly plan?: string | null | undefined
}

interface Children<Node> {
  readonly projects?: readonly Node[] | null | undefined
  readonly keys?: readonly Node[] | null | undefined
}

function childrenOf<Node extends object>({ projects, keys }: Children<Node>): readonly Node[] {
  return projects ?? keys ?? []
}

export function readDeclaration(
  fileName: string,
  text: string,
): Declaration | { readonly faults: readonly ConfigFault[] } {
  const document = readDocument(fileName, text)
  if ('faults' in document) return document
  const checked = checkSchema(declarationSchema, document.value ?? {})
  const found = 'faults' in checked ? checked.faults : repeatedNames(checked.value.workspaces ?? [], ['workspaces'])
  if ('value' in checked && found.length === 0) return checked.value
  return {
    faults: found.map(({ path, at, message }) => ({
      where: document.place(document.offset(path, at)),
      field: formatPath(path),
      message,
    })),
  }
}

function repeatedNames(list: readonly Declared[], path: ConfigPath): SchemaFault[] {
  return list.flatMap((each, at) => {
    const isRepeated = each.id === undefined && list.findIndex(({ name }) => name === each.name) < at
    const fault = {
      path: [...path, at, 'name'],
      at: 'value',
      message: 'this name is used twice; give both an id',
    } as const
    const inner = repeatedNames(childrenOf(each), [...path, at, each.projects ? 'projects' : 'keys'])
    return isRepeated ? [fault, ...inner] : inner
  })
}

/** As `readDeclaration` takes it. */
export function renderDeclaration(declaration: Declaration): string {
  const head =
    '# Made by `tollgate config export`, for `tollgate config plan FILE` and `apply FILE`. Contains no secrets of keys.\n'
  return head + stringify(declaration, { lineWidth: 120, aliasDuplicateObjects: false })
}

export type InstalledKey = AnswerOf<'getKey'>
export type InstalledProject = AnswerOf<'getProject'> & { readonly keys: readonly InstalledKey[] }
type InstalledGroup = AnswerOf<'getGroup'>
export type InstalledWorkspace = AnswerOf<'getWorkspace'> & {
  readonly projects: readonly InstalledProject[]
  readonly groups: readonly InstalledGroup[]
  /** From the next period on. */
  readonly plan: string | null
}

/** One of the three. */
interface Installed extends Children<Installed> {
  readonly id: string
  readonly name: string
  readonly limits: AnswerOf<'putKeyLimits'>
  /** `file`: a file created it, and only files change it. */
  readonly managed_by: string
  readonly models?: List
  readonly aliases?: Aliases
  readonly exports_content?: boolean
  readonly sources?: List
  readonly expires_at?: string | null
  readonly groups?: readonly InstalledGroup[]
  readonly plan?: string | null
}

export interface Installation {
  readonly workspaces: readonly InstalledWorkspace[]
  readonly plans: readonly InstalledPlan[]
  readonly managedSettings: SettingsRules
}

type InstalledPlan = AnswerOf<'putPlan'>
type DeclaredPlan = z.output<typeof planSchema>

type SettingsRules = AnswerOf<'getManagedSettings'>['rules']

/** One list for all keys, and one for the projects of each workspace. Revoked and expired keys are left out. */
export async function readInstallation(api: ApiClient): Promise<Installation> {
  const workspaces = await api.list('listWorkspaces', {}, Number.POSITIVE_INFINITY)
  const keys = await api.list('listKeys', {}, Number.POSITIVE_INFINITY)
  const active = Map.groupBy(
    keys.data.filter(({ status }) => status === 'active'),
    (key) => key.project_id,
  )
  const installed: InstalledWorkspace[] = []
  for (const workspace of workspaces.data) {
    const projects = await api.list('listProjects', { id: workspace.id }, Number.POSITIVE_INFINITY)
    const withKeys = projects.data.map((project) => ({ ...project, keys: active.get(project.id) ?? [] }))
    const groups = await api.list('listGroups', { id: workspace.id }, Number.POSITIVE_INFINITY)
    const { next_plan: next, subscription } = await api.call('getWorkspacePlan', { id: workspace.id })
    // An operator can neither give nor end a plan that the workspace pays for.
    const plan = subscription ? null : next
    installed.push({ ...workspace, projects: withKeys, groups: groups.data, plan })
  }
  const { data: plans } = await api.call('listPlans', {})
  return { workspaces: installed, plans, managedSettings: (await api.call('getManagedSettings', {})).rules }
}

/** The installation as a file would declare it, with ids only where a name is not unique. */
export function declarationOf({ workspaces, plans, managedSettings }: Installation): Declaration {
  const rules = managedSettings.map(({ role, group, settings }) => ({
    ...(role != null && { role }),
    ...(group != null && { group }),
    settings,
  }))
  return {
    ...(plans.length > 0 && { plans: plans.map(declaredPlan) }),
    workspaces: declared(workspaces),
    ...(rules.length > 0 && { managed_settings: rules }),
  } as Declaration
}

function declaredPlan({ id, name, credit, period, expires_days, price }: InstalledPlan): DeclaredPlan {
  return {
    id,
    ...(name !== id && { name }),
    ...{ credit, period },
    ...(expires_days !== null && { expires_days }),
    ...(price !== null && { price }),
  }
}

function declared(list: readonly Installed[]): readonly object[] {
  return list.map(
    ({ id, name, models, aliases, exports_content, limits, sources, expires_at, plan, groups, projects, keys }) => ({
      name,
      ...(list.filter((each) => each.name === name).length > 1 && { id }),
      ...(models && { models }),
      ...(Object.keys(aliases ?? {}).length > 0 && { aliases }),
      ...(exports_content && { exports_content }),
      ...(Object.keys(limits).length > 0 && { limits }),
      ...(sources && { sources }),
      ...(expires_at && { expires_at }),
      ...(plan && { plan }),
      ...(groups?.length && { groups: groups.map((group) => declaredGroup(group, projects ?? [])) }),
      ...(projects && { projects: declared(projects) }),
      ...(keys && { keys: declared(keys) }),
    }),
  )
}

function declaredGroup({ name, members }: InstalledGroup, projects: readonly Installed[]): DeclaredGroup {
  return { name, members: members.map((member) => placeOfMember(member, projects)).sort() }
}

/** As a file names it: the address of a person, the place of a key in its workspace. */
function placeOfMember({ id, name }: InstalledGroup['members'][number], projects: readonly Installed[]): string {
  if (!id.startsWith('key_')) return name
  const project = projects.find(({ keys }) => keys?.some((key) => key.id === id))
  // A key that has ended.
  return project ? `${step(project.name)}/${step(name)}` : id
}

/** The path of an object by the names in the file: `acme`, `acme/web`, `acme/web/ci`. */
type Place = string

export interface Change {
  readonly action:
    | 'create'
    | 'allow'
    | 'alias'
    | 'content'
    | 'group'
    | 'limit'
    | 'plan'
    | 'revoke'
    | 'delete'
    | 'replace'
  readonly what: Kind | 'group' | 'plan' | 'managed settings'
  /** Empty where there is only one. */
  readonly place: Place
  /** The rest of its line after the place: `: limits none → 60 rpm`. */
  readonly detail: string
  /** `idOf` also knows what earlier changes have created. */
  call(api: ApiClient, idOf: (place: Place) => string): Promise<object>
}

export interface Plan {
  readonly changes: readonly Change[]
  /** Ids of existing objects by place. */
  readonly ids: ReadonlyMap<Place, string>
  /** Declared changes that are impossible; nothing is applied then. */
  readonly faults: readonly string[]
  /** Created by a file but not in this one; left unchanged. */
  readonly left: readonly string[]
}

export interface PlanOptions {
  /** Revoke keys that a file created and this one does not name. */
  readonly prune: boolean
  readonly now: number
}

const kinds = ['workspace', 'project', 'key'] as const
type Kind = (typeof kinds)[number]
const putLimits = { workspace: 'putWorkspaceLimits', project: 'putProjectLimits', key: 'putKeyLimits' } as const
const managedBy = 'file'

export function planChanges(
  { plans, workspaces, managed_settings: rules }: Declaration,
  { workspaces: installation, plans: installedPlans, managedSettings }: Installation,
  { prune, now }: PlanOptions,
): Plan {
  const changes: Change[] = []
  const ids = new Map<Place, string>()
  const faults: string[] = []
  const left: string[] = []

  function planLevel(
    level: number,
    parent: Place,
    declared: readonly Declared[],
    installed: readonly Installed[],
  ): void {
    const what = kinds[level] ?? 'key'
    const prefix = level === 0 ? '' : `${parent}/`
    const change = (action: Change['action'], place: Place, detail: string, call: Change['call']): void => {
      changes.push({ action, what, place, detail, call })
    }
    const matched = declared.map((entry) => match(what, prefix, entry, installed))
    for (const { entry, place, found } of matched) {
      const { id: _, limits, plan: wanted, ...body } = entry
      const { name, models = null, aliases = null, exports_content: exportsContent } = body
      if (found && what === 'key') faults.push(...fixedMembers(place, entry, found))
      if (found && what === 'project' && !sameList(found.models, models)) {
        const detail = `: models ${shownList(found.models)} → ${shownList(models)}`
        change('allow', place, detail, (api) =>
          api.call('updateProject', { id: found.id, body: { models }, managedBy }),
        )
      }
      if (found && what === 'project' && !Bun.deepEquals(found.aliases ?? {}, aliases ?? {})) {
        const detail = `: aliases ${shownAliases(found.aliases)} → ${shownAliases(aliases)}`
        change('alias', place, detail, (api) =>
          api.call('updateProject', { id: found.id, body: { aliases }, managedBy }),
        )
      }
      if (found && what === 'project' && (found.exports_content ?? false) !== (exportsContent ?? false)) {
        const detail = exportsContent ? ': exports content' : ': exports no content'
        change('content', place, detail, (api) =>
          api.call('updateProject', { id: found.id, body: { exports_content: exportsContent ?? false }, managedBy }),
        )
      }
      if (!found && what === 'workspace') {
        change('create', place, '', (api) => api.call('createWorkspace', { body: { name }, managedBy }))
      }
      if (!found && what === 'project') {
        const create: Change['call'] = (api, idOf) =>
          api.call('createProject', {
            id: idOf(parent),
            body: { name, models, aliases, exports_content: exportsContent ?? false },
            managedBy,
          })
        const named = aliases === null ? '' : `, aliases ${shownAliases(aliases)}`
        const exported = exportsContent ? ', exports content' : ''
        change('create', place, `: models ${shownList(models)}${named}${exported}`, create)
      }
      if (!found && what === 'key') {
        // It was created and has ended, or never needs to be created.
        if (body.expires_at != null && Date.parse(body.expires_at) <= now) left.push(`key ${place} (expired)`)
        // With its limits in one call. Without an allowlist it may call what its project may.
        else {
          const allowed = models === null ? "its project's" : shownList(models)
          const detail = `: models ${allowed}, limits ${shownLimits(limits)}`
          const create: Change['call'] = (api, idOf) =>
            api.call('createKey', { id: idOf(parent), body: { ...body, limits }, managedBy })
          change('create', place, detail, create)
        }
      } else if (!Bun.deepEquals(found?.limits ?? {}, limits ?? {})) {
        const detail = `: limits ${shownLimits(found?.limits)} → ${shownLimits(limits)}`
        const put: Change['call'] = (api, idOf) =>
          api.call(putLimits[what], { id: idOf(place), body: limits ?? {}, managedBy })
        change('limit', place, detail, put)
      }
      if (what === 'workspace' && wanted !== undefined && wanted !== (found?.plan ?? null)) {
        const choose: Change['call'] = (api, idOf) =>
          wanted === null
            ? api.call('endWorkspacePlan', { id: idOf(place), managedBy })
            : api.call('putWorkspacePlan', { id: idOf(place), body: { plan: wanted }, managedBy })
        change('plan', place, `: plan ${found?.plan ?? 'none'} → ${wanted ?? 'none'}`, choose)
      }
      planLevel(level + 1, place, childrenOf(entry), found ? childrenOf(found) : [])
      if (what === 'workspace') planGroups(place, entry.groups ?? [], found)
    }
    for (const unnamed of installed.filter(({ id }) => !matched.some(({ found }) => found?.id === id))) {
      const { id, name, managed_by } = unnamed
      const place = `${prefix}${step(name)}`
      const children = childrenOf(unnamed)
      // First, so that the plan names each key that ends. What no file created is left unchanged.
      planLevel(level + 1, place, [], children)
      if (managed_by !== 'file') continue
      if (what === 'workspace') left.push(`workspace ${place} (cannot be deleted)`)
      else if (!prune) left.push(`${what} ${place} (${what === 'key' ? 'revoked' : 'deleted'} with --prune)`)
      else if (what === 'key') {
        change('revoke', place, ': revoked', (api) => api.call('revokeKey', { id, body: {}, managedBy }))
      } else if (children.some((key) => key.managed_by !== 'file')) {
        left.push(`project ${place} (has keys that no file created)`)
      } else change('delete', place, ': deleted', (api) => api.call('deleteProject', { id, managedBy }))
    }
  }

  /** After the keys that they contain. */
  function planGroups(parent: Place, declared: readonly DeclaredGroup[], workspace: Installed | undefined): void {
    const installed = workspace?.groups ?? []
    const projects = workspace?.projects ?? []
    for (const { name, members: given } of declared) {
      const place = `${parent}/${step(name)}`
      const members = [...(given ?? [])].sort()
      const found = installed.find((group) => group.name === name)
      const before = found && declaredGroup(found, projects).members
      const idsOf = (idOf: (place: Place) => string) =>
        members.map((member) => (member.includes('/') ? idOf(`${parent}/${member}`) : member))
      if (!found) {
        const create: Change['call'] = (api, idOf) =>
          api.call('createGroup', { id: idOf(parent), body: { name, members: idsOf(idOf) }, managedBy })
        changes.push({ action: 'create', what: 'group', place, detail: `: ${shownList(members)}`, call: create })
      } else if (!sameList(before, members)) {
        const detail = `: members ${shownList(before)} → ${shownList(members)}`
        const update: Change['call'] = (api, idOf) =>
          api.call('updateGroup', { id: found.id, body: { members: idsOf(idOf) }, managedBy })
        changes.push({ action: 'group', what: 'group', place, detail, call: update })
      }
    }
    for (const group of installed.filter(({ name }) => !declared.some((each) => each.name === name))) {
      if (group.managed_by !== 'file') continue
      const place = `${parent}/${step(group.name)}`
      if (!prune) left.push(`group ${place} (deleted with --prune)`)
      else {
        const call: Change['call'] = async (api) => {
          await api.call('deleteGroup', { id: group.id, managedBy })
          return {}
        }
        changes.push({ action: 'delete', what: 'group', place, detail: ': deleted', call })
      }
    }
  }

  function match(what: Kind, prefix: string, entry: Declared, installed: readonly Installed[]) {
    const { id, name } = entry
    const place = `${prefix}${step(name)}${id === undefined ? '' : `#${id}`}`
    const candidates = installed.filter((each) => (id === undefined ? each.name === name : each.id === id))
    const [found] = candidates
    if (candidates.length > 1) {
      const known = candidates.map((each) => each.id).join(', ')
      faults.push(`${what} ${place}: several have this name; say which with id: ${known}`)
    }
    if (id !== undefined && !found) faults.push(`${what} ${place}: there is none with this id`)
    if (found) ids.set(place, found.id)
    return { entry, place, found }
  }

  for (const { id, ...plan } of plans ?? []) {
    const found = installedPlans.find((each) => each.id === id)
    const before = found && shownPlan(declaredPlan(found))
    const after = shownPlan({ id, ...plan })
    if (before === after) continue
    const action = found ? 'plan' : 'create'
    const call: Change['call'] = (api) => api.call('putPlan', { plan: id, body: plan, managedBy })
    changes.push({ action, what: 'plan', place: id, detail: `: ${found ? `${before} → ` : ''}${after}`, call })
  }
  planLevel(0, '', workspaces ?? [], installation)
  if (rules && !Bun.deepEquals(rules.map(withoutNull), managedSettings.map(withoutNull))) {
    changes.push({
      ...{ action: 'replace', what: 'managed settings', place: '' },
      detail: `: ${shownRules(managedSettings)} → ${shownRules(rules)}`,
      call: (api) => api.call('putManagedSettings', { body: { rules }, managedBy }),
    })
  }
  return { changes: inOrder(changes), ids, faults, left }
}

/** Limits come after the groups that they may name, and a group is deleted after the limits that named it. */
function inOrder(changes: readonly Change[]): readonly Change[] {
  const isLimit = ({ action, what }: Change) => action === 'limit' && what !== 'key'
  const isLast = ({ action, what }: Change) => action === 'delete' && what === 'group'
  if (!changes.some(({ what }) => what === 'group')) return changes
  const others = changes.filter((change) => !isLimit(change) && !isLast(change))
  return [...others, ...changes.filter(isLimit), ...changes.filter(isLast)]
}

function shownPlan({ id, name = id, credit, period, expires_days: days, price }: DeclaredPlan): string {
  const expiry = days == null ? '' : `, expires after ${days} days`
  const shownName = name === id ? '' : `, "${name}"`
  return `$${credit} a ${period}${expiry}${price == null ? '' : `, price $${price}`}${shownName}`
}

function withoutNull({ role, group, settings }: SettingsRules[number]): object {
  return { role: role ?? undefined, group: group ?? undefined, settings }
}

/** Whom they are for, in order; their content may be long. */
function shownRules(rules: SettingsRules): string {
  const who = ({ role, group }: SettingsRules[number]) => [role, group].filter(Boolean).join(' in ') || 'everyone'
  return rules.length === 0 ? 'none' : rules.map(who).join(', ')
}

function fixedMembers(place: Place, entry: Declared, found: Installed): readonly string[] {
  const wrong = [
    ...(sameList(found.models, entry.models) ? [] : ['models']),
    ...(sameList(found.sources, entry.sources) ? [] : ['sources']),
    ...(sameTime(found.expires_at, entry.expires_at) ? [] : ['expires_at']),
  ]
  if (wrong.length === 0) return []
  return [`key ${place}: ${wrong.join(', ')} of a key cannot be changed; declare a key of another name instead`]
}

/** A name as a part of a place, escaped so that different names never give the same place. */
function step(name: string): string {
  return name.replace(/[\\/#]/g, '\\$&')
}

type Aliases = Readonly<Record<string, string>> | null | undefined

function shownAliases(aliases: Aliases): string {
  const pairs = Object.entries(aliases ?? {}).map((pair) => pair.join('='))
  return pairs.join(', ') || 'none'
}

type List = readonly string[] | null | undefined

/** Ignores the order. No allowlist differs from an empty one. */
function sameList(a: List, b: List): boolean {
  return Bun.deepEquals(a?.toSorted(), b?.toSorted())
}

function sameTime(a: string | null | undefined, b: string | null | undefined): boolean {
  return a == null || b == null ? (a ?? null) === (b ?? null) : Date.parse(a) === Date.parse(b)
}

function shownList(list: List): string {
  if (list == null) return 'all'
  return list.length === 0 ? 'none' : list.join(', ')
}

const signs = {
  ...{ create: '+', allow: '~', alias: '~', content: '~', group: '~', limit: '~', plan: '~' },
  ...{ revoke: '-', delete: '-', replace: '~' },
} as const

/** One line: `+` created, `~` changed, `-` revoked or deleted. */
export function describeChange({ action, what, place, detail }: Change): string {
  return `${signs[action]} ${what}${place === '' ? '' : ` ${place}`}${detail}`
}

export interface CreatedKey {
  readonly place: Place
  readonly id: string
  /** Shown only once. */
  readonly secret: string
}

/** Calls `onChange` after each change, with the key if it created one. */
export async function applyPlan(
  api: ApiClient,
  plan: Plan,
  onChange: (change: Change, created: CreatedKey | undefined) => void,
): Promise<void> {
  const ids = new Map(plan.ids)
  for (const change of plan.changes) {
    const { what, place } = change
    const answer = await tryTo(change.call(api, (of) => ids.get(of) ?? ''))
    if (answer instanceof Refusal)
      throw new Refusal(answer.exit, `${`${what} ${place}`.trimEnd()}: ${answer.message}`, answer.attempt)
    // Only a created object has an id, and only a created key has a secret.
    const { id = '', secret }: { readonly id?: string; readonly secret?: string } = answer
    if (change.action === 'create') ids.set(place, id)
    onChange(change, secret === undefined ? undefined : { place, id, secret })
  }
}
