/** @jsxImportSource preact */
// The script of the console.

import { ConsolePage } from '../console/console-page.tsx'
import { SignInPage } from '../console/sign-in-page.tsx'
import { takeOver } from './take-over.tsx'

takeOver({ 'sign-in': SignInPage, console: ConsolePage })
