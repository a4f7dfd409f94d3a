import { expect } from 'bun:test'
import { forEachEngine, type TestEngine, testWith } from '../../test/parts/engines.ts'
import { refusalOf } from '../../test/parts/refused.ts'
import { createId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { createVerifier } from './api-key.ts'
import { listAudit } from './audit.ts'
import { createKey, getKey, revokeKey, rotateKey } from './keys.ts'
import { putLimits } from './limits.ts'
import type { Act, PageQuery } from './management.ts'
import {
  createProject,
  createWorkspace,
  getProject,
  getWorkspace,
  listProjects,
  listWorkspaces,
  type Project,
  updateProject,
  updateWorkspace,
  type Workspace,
} from './workspaces.ts'

const noon = Date.UTC(2026, 10, 8, 12)
const act = { actor: 'management token', at: noon, requestId: createId('req') }

async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  const { database } = store
  return {
    database,
    sql: database.sql,
    addWorkspace: async (name: string): Promise<Workspace> =>
      await database.transaction((sql) => createWorkspace(sql, { name }, act)),
    addProject: async (workspaceId: string, name: string, models?: readonly string[]): Promise<Project> =>
      await database.transaction((sql) => createProject(sql, { workspaceId, name, models }, act)),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

forEachEngine((engine) => {
  const benchTest = testWith(() => createBench(engine))

  benchTest('a workspace is read as it was created', async (bench) => {
    const workspace = await bench.addWorkspace('Größe 🚀')
    const { id } = workspace
    expect(workspace).toEqual({
      id,
      name: 'Größe 🚀',
      createdAt: noon,
      limits: {},
      sharesRoutes: false,
      priceList: undefined,
      lowBalance: 1_000_000_000n as Nano,
      managedBy: 'api',
    })
    expect(await getWorkspace(bench.sql, id)).toEqual(workspace)
  })

  benchTest('objects declared by a file are marked', async (bench) => {
    const byFile = { actor: 'management token', at: noon, managedBy: 'file' } as const
    const workspace = await bench.database.transaction((sql) => createWorkspace(sql, { name: 'w' }, byFile))
    expect(await getWorkspace(bench.sql, workspace.id)).toMatchObject({ managedBy: 'file' })
  })

  benchTest('unprintable names are refused, and nothing is written', async (bench) => {
    for (const name of ['', '  ', 'two\nlines', 'nul\u0000', '\ud800', 'x'.repeat(101)]) {
      const refused = await refusalOf(bench.database.transaction((sql) => createWorkspace(sql, { name }, act)))
      expect(refused).toMatchObject({ code: 'INVALID_REQUEST', facts: { param: 'name' } })
    }
    expect((await listWorkspaces(bench.sql, { limit: 10 })).items).toEqual([])
    expect((await listAudit(bench.sql, { limit: 10 })).items).toEqual([])
  })

  benchTest('T2: unknown ids, ids of another kind and malformed ids are not found', async (bench) => {
    const { id } = await bench.addWorkspace('w')
    for (const wrong of [
      createId('ws'),
      createId('prj'),
      'ws_',
      `${id}\u0000`,
      "' OR 1=1 --",
      id.replace('ws', 'prj'),
    ]) {
      expect(await refusalOf(getWorkspace(bench.sql, wrong))).toMatchObject({ code: 'NOT_FOUND' })
      expect(await refusalOf(getProject(bench.sql, wrong))).toMatchObject({ code: 'NOT_FOUND' })
      const input = { workspaceId: wrong, name: 'p' }
      expect(await refusalOf(bench.database.transaction((sql) => createProject(sql, input, act)))).toMatchObject({
        code: 'NOT_FOUND',
      })
      expect(
        await refusalOf(bench.database.transaction((sql) => updateProject(sql, wrong, { name: 'x' }, act))),
      ).toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  benchTest('a project is read as it was created, and changed field by field', async (bench) => {
    const workspace = await bench.addWorkspace('w')
    const project = await bench.addProject(workspace.id, 'web', ['openai/*', 'acme/large'])
    const { id } = project
    const expected: Project = {
      id,
      workspaceId: workspace.id,
      name: 'web',
      models: ['openai/*', 'acme/large'],
      aliases: {},
      createdAt: noon,
      limits: {},
      managedBy: 'api',
      exportsContent: false,
      archivedAt: undefined,
    }
    expect(project).toEqual(expected)
    expect(await getProject(bench.sql, id)).toEqual(expected)
    const update = (change: Parameters<typeof updateProject>[2]) =>
      bench.database.transaction((sql) => updateProject(sql, id, change, act))
    expect(await update({ name: 'api' })).toEqual({ ...expected, name: 'api' })
    expect(await update({ models: ['acme/*'] })).toEqual({ ...expected, name: 'api', models: ['acme/*'] })
    expect(await update({})).toEqual({ ...expected, name: 'api', models: ['acme/*'] })
    expect(await update({ models: null })).toEqual({ ...expected, name: 'api', models: undefined })
    expect((await update({ exportsContent: true })).exportsContent).toBe(true)
    expect((await update({ name: 'api' })).exportsContent).toBe(true)
    expect((await update({ exportsContent: false })).exportsContent).toBe(false)
    expect(await refusalOf(update({ name: '', models: ['acme/*'] }))).toMatchObject({ facts: { param: 'name' } })
    expect(await refusalOf(update({ models: ['gpt-*'] }))).toMatchObject({ facts: { param: 'models[0]' } })
    expect(await getProject(bench.sql, id)).toEqual({ ...expected, name: 'api', models: undefined })
  })

  benchTest('G1, G2: every change adds an entry with ids and settings, without names', async (bench) => {
    const workspace = await bench.addWorkspace('Maria')
    const project = await bench.addProject(workspace.id, 'Maria', ['openai/*'])
    await bench.database.transaction((sql) => updateProject(sql, project.id, { name: 'Mario', models: null }, act))
    await bench.database.transaction((sql) => updateProject(sql, project.id, {}, act))
    for (const exportsContent of [true, false]) {
      await bench.database.transaction((sql) => updateProject(sql, project.id, { exportsContent }, act))
    }
    const { items } = await listAudit(bench.sql, { limit: 10 })
    expect(items.map(({ action, object, details }) => ({ action, object, details }))).toEqual([
      { action: 'project.update', object: project.id, details: { exports_content: false } },
      { action: 'project.update', object: project.id, details: { exports_content: true } },
      { action: 'project.update', object: project.id, details: { renamed: true, models: null } },
      { action: 'project.create', object: project.id, details: { workspace: workspace.id, models: ['openai/*'] } },
      { action: 'workspace.create', object: workspace.id, details: {} },
    ])
    for (const { actor, at, requestId } of items) expect({ actor, at, requestId }).toEqual(act)
    expect(JSON.stringify(items)).not.toContain('Mari')
  })

  benchTest('pages contain everything once and in order, also what is added meanwhile', async (bench) => {
    const workspace = await bench.addWorkspace('w')
    const other = await bench.addWorkspace('other')
    const names = Array.from({ length: 7 }, (_, at) => `p${at}`)
    for (const name of names) await bench.addProject(workspace.id, name)
    await bench.addProject(other.id, 'of another')
    const seen: string[] = []
    let page: PageQuery | undefined = { limit: 3 }
    for (let turn = 0; page; turn++) {
      const { items, nextCursor } = await listProjects(bench.sql, workspace.id, page)
      expect(items.length).toBeLessThanOrEqual(3)
      seen.push(...items.map(({ name }) => name))
      if (turn === 0) await bench.addProject(workspace.id, 'late')
      page = nextCursor === undefined ? undefined : { limit: 3, cursor: nextCursor }
    }
    expect(seen).toEqual([...names, 'late'])
  })

  benchTest('a full last page has no next page, and an invalid cursor gives an empty page', async (bench) => {
    const first = await bench.addWorkspace('a')
    const second = await bench.addWorkspace('b')
    const list = (page: PageQuery) => listWorkspaces(bench.sql, page)
    expect(await list({ limit: 2 })).toEqual({ items: [first, second], nextCursor: undefined })
    expect(await list({ limit: 1 })).toEqual({ items: [first], nextCursor: first.id })
    expect(await list({ limit: 1, cursor: first.id })).toEqual({ items: [second], nextCursor: undefined })
    for (const cursor of ['\u0000', "' OR 1=1 --", '\ud800', 'x'.repeat(5000)]) {
      expect(await list({ limit: 1, cursor })).toEqual({ items: [], nextCursor: undefined })
    }
  })
})

const byFile = { actor: 'management token', at: noon, managedBy: 'file' } as const
const byHand = { actor: 'management token', at: noon }
const verifier = createVerifier(new Uint8Array(32))

forEachEngine((_, storeTest) => {
  storeTest('an object of a file can be changed by the file only', async ({ database }) => {
    const { workspace, project, key } = await database.transaction(async (sql) => {
      const workspace = await createWorkspace(sql, { name: 'acme' }, byFile)
      const project = await createProject(sql, { workspaceId: workspace.id, name: 'web' }, byFile)
      const { key } = await createKey(sql, { projectId: project.id, name: 'ci' }, byFile, verifier)
      return { workspace, project, key }
    })
    expect([workspace.managedBy, project.managedBy, key.managedBy]).toEqual(['file', 'file', 'file'])
    const changes = (act: Act) => [
      database.transaction((sql) => updateWorkspace(sql, workspace.id, { name: 'other' }, act)),
      database.transaction((sql) => updateProject(sql, project.id, { models: ['acme/*'] }, act)),
      database.transaction((sql) =>
        putLimits(sql, { kind: 'workspace', id: workspace.id }, { requestsPerMinute: 1 }, act),
      ),
      database.transaction((sql) => putLimits(sql, { kind: 'project', id: project.id }, { requestsPerMinute: 2 }, act)),
      database.transaction((sql) => putLimits(sql, { kind: 'key', id: key.id }, { requestsPerMinute: 3 }, act)),
      database.transaction((sql) => revokeKey(sql, key.id, act)),
    ]
    const kinds = ['workspace', 'project', 'workspace', 'project', 'key', 'key']
    const refused = await Promise.all(changes(byHand).map(refusalOf))
    refused.forEach(({ code, message }, at) => {
      expect(code).toBe('INVALID_REQUEST')
      expect(message).toStartWith(`This ${kinds[at]} is managed by a file; change it there`)
    })
    expect(await getWorkspace(database.sql, workspace.id)).toEqual(workspace)
    expect(await getProject(database.sql, project.id)).toEqual(project)
    expect(await getKey(database.sql, key.id)).toEqual(key)

    await Promise.all(changes(byFile))
    expect(await getProject(database.sql, project.id)).toMatchObject({ models: ['acme/*'], managedBy: 'file' })
  })

  storeTest('a key that a file declares can be rotated by any caller', async ({ database }) => {
    const rotated = await database.transaction(async (sql) => {
      const workspace = await createWorkspace(sql, { name: 'acme' }, byFile)
      const project = await createProject(sql, { workspaceId: workspace.id, name: 'web' }, byFile)
      const { key } = await createKey(sql, { projectId: project.id, name: 'ci' }, byFile, verifier)
      return await rotateKey(sql, key.id, {}, byHand, verifier)
    })
    expect(rotated.key.managedBy).toBe('file')
  })

  storeTest('an object created by hand can be changed by a file, and its manager stays', async ({ database }) => {
    const changed = await database.transaction(async (sql) => {
      const workspace = await createWorkspace(sql, { name: 'acme' }, byHand)
      const project = await createProject(sql, { workspaceId: workspace.id, name: 'web' }, byHand)
      return await updateProject(sql, project.id, { models: ['acme/*'] }, byFile)
    })
    expect(changed).toMatchObject({ models: ['acme/*'], managedBy: 'api' })
  })
})
