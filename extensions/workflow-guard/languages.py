"""Words with which people ask for work, per language. The longest one that fits counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    """How a language asks.

    verbs: what is asked for, in the forms that stand at the start of a sentence or behind a lead.
    leads: words that ask, as "please". fillers: words between these, as "now".
    last: whether the verb may stand further back in the sentence that a lead begins.
    unless: words that make it a question about something, where they stand in between.
    """

    verbs: str
    leads: str
    fillers: str = ""
    last: bool = False
    unless: str = ""


def phrases(text: str) -> list[str]:
    """The words and groups of words of one of the texts below: they stand between bars."""
    return [" ".join(each.split()) for each in text.split("|") if each.strip()]


LANGUAGES: Mapping[str, Language] = {
    "en": Language(
        verbs="""
            add | apply | bump | build | change | clean up | code | convert | correct | create
            | debug | delete | develop | disable | drop | edit | enable | extend | extract | fix
            | generate | hook up | implement | improve | insert | install | integrate
            | introduce | make | merge | migrate | modify | move | optimise | optimize | patch
            | port | refactor | remove | rename | reorganise | reorganize | repair | replace
            | resolve | restructure | revert | rewrite | set up | simplify | split | update
            | upgrade | wire | write
        """,
        leads="""
            please | pls | kindly | let's | lets | go ahead and | can you | could you
            | would you | will you | help me | help me to | want you to | need you to
            | like you to | I want to | I need to | we want to | we need to | you should
            | you must | you need to | you have to | we should | we must | we have to
        """,
        fillers="""
            please | now | then | and | also | just | first | next | ok | okay | hey | hi | so
        """,
    ),
    "de": Language(
        verbs="""
            aktualisiere | aktualisieren | ändere | ändern | anpassen | baue | bauen | behebe
            | beheben | bereinige | bereinigen | beseitige | beseitigen | einbauen | einfügen
            | entferne | entfernen | entwickle | entwickeln | ergänze | ergänzen | ersetze
            | ersetzen | erstelle | erstellen | erweitere | erweitern | fixe | fixen | füge
            | generiere | generieren | hinzufügen | implementiere | implementieren | installiere
            | installieren | integriere | integrieren | konfiguriere | konfigurieren
            | korrigiere | korrigieren | lösche | löschen | migriere | migrieren | optimiere
            | optimieren | passe | refaktoriere | refaktorieren | refactore | repariere
            | reparieren | schreib | schreibe | schreiben | umbauen | umbenennen | umstellen
            | benenne | vereinfache | vereinfachen | verschiebe | verschieben | verbessere
            | verbessern
        """,
        leads="""
            bitte | kannst du | könntest du | kannst Du bitte | würdest du | können Sie
            | könnten Sie | du sollst | du musst | wir müssen | wir sollten | ich möchte
            | ich will | lass uns | hilf mir
        """,
        fillers="bitte | jetzt | dann | nun | und | auch | noch | zuerst | mal | ok | also",
        last=True,
        unless="erklär | erklären | erkläre | zeig | zeige | zeigen | wie | warum | weshalb | ob",
    ),
    "fr": Language(
        verbs="""
            ajoute | ajouter | ajoutez | change | changer | changez | corrige | corriger
            | corrigez | crée | créer | créez | déplace | déplacer | déplacez | développe
            | développer | développez | écris | écrire | écrivez | génère | générer | générez
            | implémente | implémenter | implémentez | installe | installer | installez
            | intègre | intégrer | intégrez | mets à jour | mettre à jour | mettez à jour
            | migre | migrer | migrez | modifie | modifier | modifiez | nettoie | nettoyer
            | nettoyez | optimise | optimiser | optimisez | refactorise | refactoriser
            | refactorisez | remplace | remplacer | remplacez | renomme | renommer | renommez
            | répare | réparer | réparez | simplifie | simplifier | simplifiez | supprime
            | supprimer | supprimez
        """,
        leads="""
            s'il te plaît | s'il vous plaît | stp | svp | merci de | peux-tu | pouvez-vous
            | pourrais-tu | pourriez-vous | tu peux | vous pouvez | il faut | je veux
            | je voudrais | il faudrait | on doit | nous devons | tu dois | vous devez
            | aide-moi à | aidez-moi à
        """,
        fillers="maintenant | ensuite | puis | et | aussi | d'abord | ok | alors | donc",
    ),
    "es": Language(
        verbs="""
            actualice | actualiza | actualizar | agrega | agregar | agregue | añada | añade
            | añadir | arregla | arreglar | arregle | borra | borrar | borre | cambia | cambiar
            | cambie | configura | configurar | configure | corrige | corregir | corrija | crea
            | crear | cree | desarrolla | desarrollar | desarrolle | elimina | eliminar
            | elimine | escriba | escribe | escribir | genera | generar | genere | implementa
            | implementar | implemente | instala | instalar | instale | integra | integrar
            | integre | limpia | limpiar | limpie | mejora | mejorar | mejore | migra | migrar
            | migre | modifica | modificar | modifique | mover | mueva | mueve | optimice
            | optimiza | optimizar | quita | quitar | quite | reemplace | reemplaza | reemplazar
            | refactorice | refactoriza | refactorizar | renombra | renombrar | renombre
            | repara | reparar | repare | simplifica | simplificar
        """,
        leads="""
            por favor | puedes | podrías | puede | podría | quiero | quiero que | necesito
            | necesito que | hay que | tenemos que | tienes que | debes | vamos a | ayúdame a
        """,
        fillers="ahora | luego | después | y | también | primero | ok | entonces",
    ),
    "zh": Language(
        verbs="""
            修复 | 修改 | 修正 | 实现 | 添加 | 增加 | 新增 | 加上 | 删除 | 移除 | 去掉
            | 重构 | 重写 | 重命名 | 更新 | 升级 | 替换 | 编写 | 写一个 | 写个 | 创建
            | 新建 | 改成 | 改为 | 迁移 | 优化 | 开发 | 集成 | 生成 | 安装 | 配置 | 解决
            | 修復 | 實現 | 刪除 | 重構 | 重寫 | 替換 | 編寫 | 寫一個 | 創建 | 改為
            | 遷移 | 優化 | 開發
        """,
        leads="""
            请 | 請 | 帮我 | 幫我 | 帮忙 | 麻烦 | 麻煩 | 给我 | 能不能 | 可以 | 把 | 将
            | 需要 | 我想 | 我要 | 我们要
        """,
        fillers="现在 | 然后 | 再 | 先 | 你",
        last=True,
        unless="""
            解释 | 解釋 | 说明 | 說明 | 介绍 | 如何 | 怎么 | 怎麼 | 怎样 | 为什么
            | 為什麼 | 什么 | 什麼 | 是否
        """,
    ),
}
