import { expect, test } from 'bun:test'
import {
  type Declaration,
  declarationOf,
  describeChange,
  type Installation,
  type InstalledKey,
  type InstalledWorkspace,
  type PlanOptions,
  planChanges,
  readDeclaration,
  renderDeclaration,
} from './declaration.ts'

const noon = Date.UTC(2026, 10, 8, 12)

function key(name: string, more: Partial<InstalledKey> = {}): InstalledKey {
  const open = { models: null, sources: null, expires_at: null }
  return { id: `key_${name}`, name, limits: {}, managed_by: 'file', ...open, ...more } as InstalledKey
}

function installation(limits: object, keys: readonly InstalledKey[]): readonly InstalledWorkspace[] {
  const project = { id: 'prj_1', name: 'web', limits: {}, managed_by: 'file', models: ['acme/*', 'beta/one'], keys }
  return [{ id: 'ws_1', name: 'acme', limits, managed_by: 'api', projects: [project] } as unknown as InstalledWorkspace]
}

function read(text: string): Declaration {
  const declaration = readDeclaration('file.yaml', text)
  if ('faults' in declaration) throw new Error(JSON.stringify(declaration.faults))
  return declaration
}

function plan(
  text: string,
  workspaces: readonly InstalledWorkspace[],
  options: Partial<PlanOptions> & Partial<Pick<Installation, 'managedSettings'>> = {},
) {
  const { managedSettings = [], ...chosen } = options
  const installed = { workspaces, plans: [], managedSettings }
  const { changes, left, faults } = planChanges(read(text), installed, { prune: false, now: noon, ...chosen })
  return { changes: changes.map(describeChange), left, faults }
}

const nothing = { changes: [], left: [], faults: [] }

test('an export plans no change, even if several objects have the same name', () => {
  const expires_at = '2027-01-31T00:00:00.000Z'
  const keys = [
    key('ci', { limits: { requests_per_minute: 60, spend_per_day: '5.00' }, expires_at }),
    key('a', { id: 'key_1', name: 'twin', sources: ['10.0.0.0/8'] }),
    key('b', { id: 'key_2', name: 'twin', models: [] }),
  ]
  const installed = installation({ spend_per_month: '500.00' }, keys)
  const text = renderDeclaration(declarationOf({ workspaces: installed, plans: [], managedSettings: [] }))
  expect(plan(text, installed)).toEqual(nothing)
  expect(text).toContain('id: key_1')
  expect(text).not.toContain('ws_1')
  expect(text).not.toContain('prj_1')
})

test('plans everything for an empty installation, parents first', () => {
  const text = `workspaces:
  - name: acme
    limits: { requests_per_minute: 600 }
    projects:
      - name: web
        models: [acme/*]
        limits: { spend_per_day: 5 }
        keys: [{ name: ci, limits: { requests_per_minute: 60 } }]
`
  expect(plan(text, []).changes).toEqual([
    '+ workspace acme',
    '~ workspace acme: limits none → 600 rpm',
    '+ project acme/web: models acme/*',
    '~ project acme/web: limits none → $5.00/day',
    "+ key acme/web/ci: models its project's, limits 60 rpm",
  ])
})

test('replaces managed settings as a whole, and leaves them if the file does not name them', () => {
  const managedSettings = [
    { role: null, group: null, settings: { model: 'x' } },
    { role: 'admin' as const, group: 'platform', settings: { model: 'y' } },
  ]
  const planned = (text: string) => plan(text, [], { managedSettings })
  expect(planned('workspaces: []')).toEqual(nothing)
  const text = renderDeclaration(declarationOf({ workspaces: [], plans: [], managedSettings }))
  expect(planned(text)).toEqual(nothing)
  expect(planned('managed_settings: [{ settings: { model: x } }]').changes).toEqual([
    '~ managed settings: everyone, admin in platform → everyone',
  ])
  expect(planned('managed_settings: []').changes).toEqual(['~ managed settings: everyone, admin in platform → none'])
  // The order decides.
  const swapped =
    'managed_settings: [{ role: admin, group: platform, settings: { model: y } }, { settings: { model: x } }]'
  expect(planned(swapped).changes).toHaveLength(1)
  const wrong = readDeclaration('f.yaml', 'managed_settings: [{ role: boss, settings: {} }]')
  expect('faults' in wrong && wrong.faults.map(({ where, field }) => [where, field])).toEqual([
    ['f.yaml:1:28', 'managed_settings[0].role'],
  ])
})

test('shows differences as from and to, and ignores order and spelling', () => {
  const installed = installation({ spend_per_day: '5.00', requests_per_minute: 60 }, [])
  const same = `workspaces:
  - { name: acme, limits: { requests_per_minute: 60, spend_per_day: "5" },
      projects: [{ name: web, models: [beta/one, "acme/*"] }] }
`
  expect(plan(same, installed)).toEqual(nothing)
  const other = 'workspaces: [{ name: acme, projects: [{ name: web, limits: { tokens_per_minute: 1000 } }] }]'
  expect(plan(other, installed).changes).toEqual([
    '~ workspace acme: limits 60 rpm, $5.00/day → none',
    '~ project acme/web: models acme/*, beta/one → all',
    '~ project acme/web: limits none → 1,000 tpm',
  ])
})

test('aliases of a project are exported, planned and compared', () => {
  const [workspace] = installation({}, [])
  const [web] = workspace?.projects ?? []
  const installed = [{ ...workspace, projects: [{ ...web, aliases: { gpt: 'acme/large' } }] }] as InstalledWorkspace[]
  const text = renderDeclaration(declarationOf({ workspaces: installed, plans: [], managedSettings: [] }))
  expect(text).toContain('gpt: acme/large')
  expect(plan(text, installed)).toEqual(nothing)
  expect(plan(text, []).changes[1]).toBe('+ project acme/web: models acme/*, beta/one, aliases gpt=acme/large')
  expect(plan(text.replace('gpt: acme/large', 'fast: beta/one'), installed).changes).toEqual([
    '~ project acme/web: aliases gpt=acme/large → fast=beta/one',
  ])
})

test('content export of a project is exported, planned and compared', () => {
  const [workspace] = installation({}, [])
  const [web] = workspace?.projects ?? []
  const installed = [{ ...workspace, projects: [{ ...web, exports_content: true }] }] as InstalledWorkspace[]
  const text = renderDeclaration(declarationOf({ workspaces: installed, plans: [], managedSettings: [] }))
  expect(text).toContain('exports_content: true')
  expect(plan(text, installed)).toEqual(nothing)
  expect(plan(text, []).changes[1]).toBe('+ project acme/web: models acme/*, beta/one, exports content')
  expect(plan(text.replace('exports_content: true', 'exports_content: false'), installed).changes).toEqual([
    '~ project acme/web: exports no content',
  ])
})

test('revokes nothing without --prune, and with it only keys that a file created', () => {
  const installed = installation({}, [key('gone'), key('handmade', { managed_by: 'api' })])
  const text = 'workspaces: [{ name: acme, projects: [{ name: web, models: ["acme/*", beta/one] }] }]'
  expect(plan(text, installed)).toEqual({ ...nothing, left: ['key acme/web/gone (revoked with --prune)'] })
  expect(plan(text, installed, { prune: true })).toEqual({ ...nothing, changes: ['- key acme/web/gone: revoked'] })
  expect(plan('', installed, { prune: true })).toEqual({
    changes: ['- key acme/web/gone: revoked'],
    left: ['project acme/web (has keys that no file created)'],
    faults: [],
  })
})

test('deletes a project that a file created with --prune, after its keys', () => {
  const installed = installation({}, [key('gone')])
  expect(plan('', installed).left).toEqual([
    'key acme/web/gone (revoked with --prune)',
    'project acme/web (deleted with --prune)',
  ])
  expect(plan('', installed, { prune: true })).toEqual({
    ...nothing,
    changes: ['- key acme/web/gone: revoked', '- project acme/web: deleted'],
  })
})

test('reports impossible changes instead of a plan', () => {
  const installed = installation({}, [key('ci'), key('a', { name: 'twin' }), key('b', { name: 'twin' })])
  const text = `workspaces:
  - name: acme
    projects:
      - name: web
        models: [acme/*, beta/one]
        keys: [{ name: ci, models: [acme/large], expires_at: "2027-01-01T00:00:00Z" }, { name: twin }, { name: x, id: key_9 }]
`
  expect(plan(text, installed).faults).toEqual([
    'key acme/web/twin: several have this name; say which with id: key_a, key_b',
    'key acme/web/x#key_9: there is none with this id',
    'key acme/web/ci: models, expires_at of a key cannot be changed; declare a key of another name instead',
  ])
})

test('does not create a key that has expired', () => {
  const text = `workspaces: [{ name: acme, projects: [{ name: web, models: ["acme/*", beta/one],
    keys: [{ name: old, expires_at: "2026-11-08T12:00:00Z" }, { name: new, expires_at: "2026-11-08T12:00:01Z" }] }] }]`
  expect(plan(text, installation({}, []))).toEqual({
    changes: ["+ key acme/web/new: models its project's, limits none"],
    left: ['key acme/web/old (expired)'],
    faults: [],
  })
})

test('does not confuse names with slashes and paths', () => {
  const text = 'workspaces: [{ name: acme, projects: [{ name: web/ci }] }, { name: acme/web }]'
  const { changes } = planChanges(
    read(text),
    { workspaces: [], plans: [], managedSettings: [] },
    { prune: false, now: noon },
  )
  expect(new Set(changes.map(({ place }) => place)).size).toBe(changes.length)
})

test('reports errors in the file by line and field', () => {
  const faultsOf = (text: string) => {
    const declaration = readDeclaration('file.yaml', text)
    return 'faults' in declaration ? declaration.faults : []
  }
  expect(faultsOf('workspaces:\n  - name: a\n    limit: {}\n')).toEqual([
    expect.objectContaining({ where: 'file.yaml:3:5', field: 'workspaces[0].limit' }),
  ])
  expect(faultsOf('workspaces:\n  - name: a\n  - name: a\n')).toEqual([
    { where: 'file.yaml:3:11', field: 'workspaces[1].name', message: 'this name is used twice; give both an id' },
  ])
  expect(faultsOf('workspaces: [{ name: a, limits: { spend_per_day: cheap } }]')[0]?.message).toContain('decimal')
})

test('plans and the plan of a workspace are exported, planned and compared', () => {
  const [workspace] = installation({}, [])
  const pro = {
    ...{ id: 'pro', name: 'Pro', credit: '20.00', expires_days: null, price: '15.00' },
    workspaces: ['ws_1'],
    period: 'month' as const,
  }
  const installed: Installation = {
    workspaces: [{ ...workspace, plan: 'pro' } as InstalledWorkspace],
    plans: [pro, { ...pro, id: 'daily', name: 'daily', period: 'day', expires_days: 7, price: null }],
    managedSettings: [],
  }
  const changesOf = (text: string, present = installed) =>
    planChanges(read(text), present, { prune: false, now: noon }).changes.map(describeChange)
  const text = renderDeclaration(declarationOf(installed))
  expect(changesOf(text)).toEqual([])
  expect(changesOf(text, { workspaces: [], plans: [], managedSettings: [] })).toEqual([
    '+ plan pro: $20.00 a month, price $15.00, "Pro"',
    '+ plan daily: $20.00 a day, expires after 7 days',
    '+ workspace acme',
    '~ workspace acme: plan none → pro',
    '+ project acme/web: models acme/*, beta/one',
  ])
  const projects = 'projects: [{ name: web, models: [acme/*, beta/one] }]'
  // What the file does not name stays.
  expect(changesOf(`workspaces: [{ name: acme, ${projects} }]`)).toEqual([])
  expect(
    changesOf(
      `{ plans: [{ id: pro, credit: 5, period: week }], workspaces: [{ name: acme, plan: null, ${projects} }] }`,
    ),
  ).toEqual(['~ plan pro: $20.00 a month, price $15.00, "Pro" → $5.00 a week', '~ workspace acme: plan pro → none'])
})
