// The catalog's script.

import { ComparePage } from '../catalog/compare-page.tsx'
import { ListPage } from '../catalog/list-page.tsx'
import { ModelPage } from '../catalog/model-page.tsx'
import { DocsPage } from '../docs-page.tsx'
import { NoticePage } from '../shell.tsx'
import { hydratePage } from './hydrate-page.tsx'

hydratePage({ list: ListPage, model: ModelPage, compare: ComparePage, docs: DocsPage, notice: NoticePage })
