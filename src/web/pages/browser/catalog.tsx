/** @jsxImportSource preact */
// The script of the catalog.

import { ComparePage } from '../catalog/compare-page.tsx'
import { ListPage } from '../catalog/list-page.tsx'
import { ModelPage } from '../catalog/model-page.tsx'
import { NoticePage } from '../shell/notice-page.tsx'
import { takeOver } from './take-over.tsx'

takeOver({ list: ListPage, model: ModelPage, compare: ComparePage, notice: NoticePage })
